from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hard_inputs import blocks
from tests.video.clips import write_blocks
from vidpipe.errors import MediaError
from vidpipe.video.decode import decode_frames
from vidpipe.video.timeline import Timeline, read_timeline
from vidpipe.video.walk import Walker

HARD = Path(__file__).parents[1] / "hard_inputs" / "video"


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Timeline:
    return read_timeline(write_blocks(tmp_path_factory.mktemp("clip") / "clip.mp4"))


def kind_of(timeline: Timeline, start_s: float | None, end_s: float | None) -> str:
    with pytest.raises(MediaError) as error:
        timeline.window(start_s, end_s)
    return error.value.kind


@pytest.mark.parametrize(
    ("start_s", "end_s", "expected"),
    [
        (None, None, (0, 30)),
        (0, None, (0, 30)),
        (0.3, 0.5, (3, 5)),
        (0.25, 0.55, (3, 6)),
        (None, 0.1, (0, 1)),
        (2.9, 99, (29, 30)),
    ],
)
def test_a_window_takes_start_and_leaves_end(
    steady: Timeline, start_s: float | None, end_s: float | None, expected: tuple[int, int]
) -> None:
    assert steady.window(start_s, end_s) == expected


@pytest.mark.parametrize(
    ("start_s", "end_s"),
    [(1, 0.5), (1, 1), (-1, 2), (0, -1), (float("nan"), 1), (0, float("inf")), (3.0, None), (0.31, 0.39)],
)
def test_windows_that_make_no_sense(steady: Timeline, start_s: float, end_s: float | None) -> None:
    assert kind_of(steady, start_s, end_s) == "bad_window"


@given(st.floats(0, 2.9), st.floats(0.001, 3))
def test_a_window_holds_exactly_the_frames_inside(steady: Timeline, start_s: float, length_s: float) -> None:
    inside = [i for i, t in enumerate(steady.times_s) if start_s - 5e-7 <= t < start_s + length_s - 5e-7]
    if not inside:
        assert kind_of(steady, start_s, start_s + length_s) == "bad_window"
    else:
        assert steady.window(start_s, start_s + length_s) == (inside[0], inside[-1] + 1)


def test_a_file_that_starts_below_zero_may_be_cut_there() -> None:
    below = read_timeline(HARD / "neg_pts.flv")
    assert below.window(-0.55, -0.4) == (0, 2)
    assert below.window(0, None) == (6, 30)
    assert kind_of(below, -0.6, None) == "bad_window"


def test_joined_recordings_have_one_running_time() -> None:
    joined = read_timeline(HARD / "ts_concat.ts")
    assert (np.diff(joined.elapsed_s) > 0).all()
    assert joined.window(4.4, 4.8) == (28, 32)  # across the joint, where the clock falls back to 1.6 s


@pytest.mark.parametrize(
    ("name", "codec", "options"),
    [
        ("reordered.mp4", "libx264", {"g": "12", "bf": "3"}),
        ("open.mkv", "libx264", {"g": "10", "bf": "3", "x264-params": "open-gop=1:scenecut=0"}),
        ("open.ts", "libx264", {"g": "10", "bf": "3", "x264-params": "open-gop=1:scenecut=0"}),
        ("refresh.mp4", "libx264", {"g": "10", "x264-params": "intra-refresh=1:bframes=0"}),
        ("hevc.mkv", "libx265", {"x265-params": "keyint=10:open-gop=1:log-level=none"}),
        ("hidden.webm", "libvpx", {"g": "20", "auto-alt-ref": "1", "lag-in-frames": "16", "b": "500k"}),
        ("hidden9.webm", "libvpx-vp9", {"g": "20", "auto-alt-ref": "1", "lag-in-frames": "16", "b": "500k"}),
        ("program.mpg", "mpeg2video", {"g": "10", "bf": "2", "b": "2M"}),
        ("divx.avi", "mpeg4", {"g": "10", "bf": "2", "q": "2"}),
        ("stills.avi", "mjpeg", {"q": "2"}),
    ],
)
def test_every_kind_of_stream_is_counted_without_and_with_decoding(
    name: str, codec: str, options: dict[str, str], tmp_path: Path
) -> None:
    times_ms = [n * 40 for n in range(30)]
    pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
    kwargs = {"codec": codec, "options": options, "pix_fmt": pix_fmt, "times_ms": times_ms}
    clip = write_blocks(tmp_path / name, rate=25, **kwargs)
    timeline = read_timeline(clip)
    frames = decode_frames(clip, range(len(timeline)), timeline=timeline)
    assert [blocks.read(picture) for picture in frames.pixels] == list(range(30))
    assert np.allclose(np.diff(timeline.times_s), 0.04, atol=1.1e-3)
    assert (timeline.missing, frames.missing, timeline.variable_rate) == (0, 0, False)


@settings(max_examples=8)
@given(st.lists(st.integers(11, 3000), min_size=3, max_size=12))
def test_any_distances_come_back(steps_ms: list[int]) -> None:
    import tempfile

    times_ms = np.concatenate(([0], np.cumsum(steps_ms)))
    with tempfile.TemporaryDirectory() as folder:
        clip = write_blocks(Path(folder) / "clip.mkv", numbers=range(len(times_ms)), times_ms=times_ms.tolist())
        assert np.allclose(read_timeline(clip).times_s, times_ms / 1000, atol=1e-3)


def test_sound_files_are_not_decoded_for_their_times(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("decoded")

    clip = write_blocks(tmp_path / "clip.mp4")
    monkeypatch.setattr(Walker, "feed", refuse)
    assert len(read_timeline(clip)) == 30
