"""Every hard file is shown as it is: the right frames, at their times, upright, or a named error."""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.hard_inputs import blocks
from vidpipe.errors import MediaError
from vidpipe.video.decode import Frames, decode_frames
from vidpipe.video.probe import probe
from vidpipe.video.timeline import read_timeline

HERE = Path(__file__).parent
CASES = json.loads((HERE / "video_cases.json").read_text())
TIME_TOLERANCE_S = 1e-3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all inputs, the awkward names unpacked."""
    root = tmp_path_factory.mktemp("hard")
    for source in (HERE / "video").iterdir():
        if source.name != "names.tar":
            (root / source.name).symlink_to(source)
    with tarfile.open(HERE / "video" / "names.tar") as tar:
        tar.extractall(root / "tar", filter="tar")
    (unpacked,) = (path for path in (root / "tar").rglob("noextension"))
    (root / "names").symlink_to(unpacked.parent)
    return root


def outcome_of(path: Path) -> tuple[str, Frames | None]:
    """What a run would make of the file, and all its frames."""
    try:
        timeline = read_timeline(path)
        frames = decode_frames(path, range(len(timeline)), timeline=timeline)
    except MediaError as error:
        return f"error:{error.kind}", None
    return ("ok_partial" if timeline.missing or frames.missing else "ok"), frames


def cases(*, readable: bool) -> list[Any]:
    """The cases with, or without, frames to show."""
    return [pytest.param(c, id=c["id"]) for c in CASES if ("display_wh" in c["facts"]) == readable]


@pytest.mark.parametrize("case", cases(readable=True))
def test_outcome_and_frames(case: dict[str, Any], folder: Path) -> None:
    facts, expect = case["facts"], case["expect"]
    outcome, frames = outcome_of(folder / case["file"])
    assert outcome in (expect["outcome"], *expect.get("accept", ()))
    assert frames is not None
    numbers = [blocks.read(picture) for picture in frames.pixels]
    if "time_of_index" in facts:  # damaged, or of one rate: each frame's number tells its time
        start, step = facts["time_of_index"]["start"], facts["time_of_index"]["step"]
        assert None not in numbers
        assert np.abs(frames.times_s - (start + step * np.array(numbers))).max() < TIME_TOLERANCE_S
        assert set(numbers) <= set(facts["indexes"])
    else:
        assert numbers == facts["indexes"]
    if "frames" in expect:
        assert len(frames.indices) == expect["frames"]
    assert frames.pixels.shape[2:0:-1] == tuple(facts["display_wh"])


@pytest.mark.parametrize("case", cases(readable=True))
def test_times_as_the_file_states_them(case: dict[str, Any], folder: Path) -> None:
    facts, expect = case["facts"], case["expect"]
    if "time_of_index" in facts or facts["times_s"] is None:
        pytest.skip("the file states no times, or test_outcome_and_frames compares them")
    times = read_timeline(folder / case["file"]).times_s
    assert len(times) == expect["frames"]
    stated = np.array([np.nan if t is None else t for t in facts["times_s"]])
    assert np.nanmax(np.abs(times - stated)) < TIME_TOLERANCE_S


@pytest.mark.parametrize("case", cases(readable=True))
def test_probe_agrees(case: dict[str, Any], folder: Path) -> None:
    facts, expect = case["facts"], case["expect"]
    found = probe(folder / case["file"])
    assert found.display_wh == tuple(facts["display_wh"])
    assert found.rotation_deg == facts.get("rotation_cw", 0)
    assert found.mirrored == facts.get("mirrored", False)
    if "video_stream_index" in facts:
        assert found.stream_index == facts["video_stream_index"]
    if "video_duration_s" in facts:
        assert found.duration_s == pytest.approx(facts["video_duration_s"])
    if "frames" in expect:
        assert (found.frames, found.frames_known) == (expect["frames"], True)


@pytest.mark.parametrize("case", cases(readable=True))
def test_one_frame_alone_is_the_same_frame(case: dict[str, Any], folder: Path) -> None:
    path = folder / case["file"]
    timeline = read_timeline(path)
    if len(timeline.times_s) * timeline.packets.size.max() > 1_000_000:
        pytest.skip("large pictures: covered by the others")
    everything = decode_frames(path, range(len(timeline)), timeline=timeline)
    for place in range(0, len(everything.indices), 5):
        alone = decode_frames(path, [int(everything.indices[place])], timeline=timeline)
        assert np.array_equal(alone.pixels[0], everything.pixels[place])
        assert alone.times_s[0] == everything.times_s[place]


@pytest.mark.parametrize("case", cases(readable=False))
def test_error_kind(case: dict[str, Any], folder: Path) -> None:
    outcome, _ = outcome_of(folder / case["file"])
    assert outcome == f"error:{case['expect']['error_kind']}"
    with pytest.raises(MediaError) as error:
        probe(folder / case["file"])
    assert error.value.kind == case["expect"]["error_kind"]
    assert Path(case["file"]).name in str(error.value)


@pytest.mark.parametrize(("name", "word"), [("hdr10.mp4", "hdr: PQ"), ("interlaced.mpg", "interlaced:")])
def test_probe_notes(name: str, word: str, folder: Path) -> None:
    assert any(note.startswith(word) for note in probe(folder / name).notes)


def test_a_name_may_be_bytes(folder: Path) -> None:
    name = os.fsencode(folder / "names" / "latin1_\udce9.mp4")
    assert probe(name).frames == 3


def test_a_relative_name_with_a_colon_is_no_protocol(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder / "names")
    assert probe("cam:01.mp4").frames == 3
    assert probe("-i.mp4").frames == 3
