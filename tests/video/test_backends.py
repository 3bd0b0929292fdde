from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.video.clips import set_display_matrix, write_blocks
from vidpipe.errors import CapabilityError
from vidpipe.video.backends import BackendName, decode_with, unavailable
from vidpipe.video.decode import decode_frames

HARD = Path(__file__).parents[1] / "hard_inputs" / "video"
OTHERS: tuple[BackendName, ...] = ("opencv", "torchcodec")


@pytest.fixture(params=OTHERS)
def backend(request: pytest.FixtureRequest) -> BackendName:
    if (reason := unavailable(request.param)) is not None:
        pytest.skip(reason)
    return request.param


@pytest.mark.parametrize("times_ms", [None, [0, 40, 80, 900, 1000, 4000]])
def test_same_frames_and_times(backend: BackendName, times_ms: list[int] | None, tmp_path: Path) -> None:
    clip = write_blocks(tmp_path / "clip.mp4", numbers=range(6), times_ms=times_ms)
    ours, theirs = decode_frames(clip, [1, 5, 3, 5]), decode_with(backend, clip, [1, 5, 3, 5])
    assert np.array_equal(ours.pixels, theirs.pixels)
    assert ours.indices.tolist() == theirs.indices.tolist()
    assert ours.times_s.tolist() == theirs.times_s.tolist()


@pytest.mark.parametrize("name", ["edit_trim.mp4", "ts_concat.ts", "raw.h264", "trunc_faststart.mp4", "two_video.mkv"])
def test_files_that_others_read_wrongly_are_refused(backend: BackendName, name: str) -> None:
    with pytest.raises(CapabilityError, match="use pyav"):
        decode_with(backend, HARD / name, [0])


def test_turned_pictures_are_refused(backend: BackendName, tmp_path: Path) -> None:
    clip = write_blocks(tmp_path / "clip.mp4", numbers=range(3))
    set_display_matrix(clip, [-1, 0, 0, 0, 1, 0, 0, 0, 1])
    with pytest.raises(CapabilityError, match="mirrored"):
        decode_with(backend, clip, [0])


def test_a_name_that_would_end_the_process_is_refused(tmp_path: Path) -> None:
    clip = write_blocks(tmp_path / "clip.mp4", numbers=range(3))
    strange = bytes(tmp_path) + b"/\xe9.mp4"
    shutil.copy(clip, strange)
    with pytest.raises(CapabilityError, match="UTF-8"):
        decode_with("opencv", strange, [0])
    assert len(decode_with("pyav", strange, [0]).indices) == 1


def test_a_backend_that_does_not_load_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torchcodec", None)
    assert "does not load" in (unavailable("torchcodec") or "")
    with pytest.raises(CapabilityError, match="use pyav"):
        decode_with("torchcodec", "clip.mp4", [0])
