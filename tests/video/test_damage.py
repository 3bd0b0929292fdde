"""Broken files: what is shown is right, and what is missing is said."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from tests.hard_inputs import blocks
from tests.video.clips import write_blocks
from vidpipe.errors import MediaError
from vidpipe.video.decode import Frames, decode_frames
from vidpipe.video.timeline import Timeline, read_timeline
from vidpipe.video.truncation import is_cut

STREAMS = {
    "clip.mkv": ("libx264", {"g": "10", "bf": "2"}),
    "clip.webm": ("libvpx-vp9", {"g": "10"}),
    "clip.avi": ("mpeg4", {"g": "10", "q": "2"}),
    "clip.mov": ("libx264", {"g": "10", "bf": "2"}),
    "clip.gif": ("gif", {}),
}


def make(name: str, folder: Path) -> Path:
    codec, options = STREAMS[name]
    pix_fmt = "rgb8" if codec == "gif" else "yuv420p"
    return write_blocks(folder / name, codec=codec, options=options, pix_fmt=pix_fmt)


def everything(path: Path) -> tuple[Timeline, Frames] | str:
    try:
        timeline = read_timeline(path)
        return timeline, decode_frames(path, range(len(timeline)), timeline=timeline)
    except MediaError as error:
        return error.kind


def assert_true_to_time(frames: Frames) -> None:
    for picture, time_s in zip(frames.pixels, frames.times_s, strict=True):
        number = blocks.read(picture)
        assert number is not None
        assert time_s == pytest.approx(number / 10, abs=1e-2)


@pytest.mark.parametrize("name", STREAMS)
def test_a_whole_file_is_not_called_cut(name: str, tmp_path: Path) -> None:
    path = make(name, tmp_path)
    assert not is_cut(path)
    found = everything(path)
    assert not isinstance(found, str)
    assert (len(found[1].indices), found[0].missing, found[1].missing) == (30, 0, 0)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("name", STREAMS)
def test_a_cut_file_is_never_a_shorter_one(name: str, share: float, tmp_path: Path) -> None:
    path = make(name, tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    found = everything(path)
    if isinstance(found, str):
        assert found in ("truncated", "not_openable", "corrupt", "no_video_stream")
        return
    timeline, frames = found
    assert timeline.missing + frames.missing > 0
    assert any(note.startswith("partial:") for note in frames.notes)
    assert_true_to_time(frames)


def test_a_cut_ogg_stream_is_noticed(tmp_path: Path) -> None:
    path = write_blocks(tmp_path / "clip.ogv", codec="libvpx", options={"g": "10"})
    assert not is_cut(path)
    path.write_bytes(path.read_bytes()[:-200])
    assert is_cut(path)
    assert read_timeline(path).missing > 0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["clip.mkv", "clip.mov"])
def test_noise_in_the_middle_shows_nothing_false(name: str, seed: int, tmp_path: Path) -> None:
    path = make(name, tmp_path)
    content = bytearray(path.read_bytes())
    dice = random.Random(seed)
    start = int(len(content) * dice.uniform(0.3, 0.6))
    for at in range(start, start + len(content) // 12):
        content[at] = dice.randrange(256)
    path.write_bytes(content)
    found = everything(path)
    if not isinstance(found, str):
        assert_true_to_time(found[1])


def test_frames_asked_for_twice_and_out_of_order_come_so(tmp_path: Path) -> None:
    clip = make("clip.mkv", tmp_path)
    frames = decode_frames(clip, [7, 3, 7, 29])
    assert [blocks.read(picture) for picture in frames.pixels] == [7, 3, 7, 29]
    assert frames.indices.tolist() == [7, 3, 7, 29]


@pytest.mark.parametrize("indices", [[], [30], [-1, 2]])
def test_frames_that_are_not_there(indices: list[int], tmp_path: Path) -> None:
    with pytest.raises(MediaError) as error:
        decode_frames(make("clip.mkv", tmp_path), indices)
    assert error.value.kind == "bad_window"


def test_a_frame_that_does_not_decode_is_left_out_and_counted(tmp_path: Path) -> None:
    path = make("clip.mov", tmp_path)
    timeline = read_timeline(path)
    number = int(timeline.packet_of_frame[15])
    content = bytearray(path.read_bytes())
    at = int(timeline.packets.place[number])
    content[at : at + int(timeline.packets.size[number])] = b"\xff" * int(timeline.packets.size[number])
    path.write_bytes(content)
    frames = decode_frames(path, [5, 15, 25])
    assert frames.indices.tolist() == [5, 25]
    assert frames.missing == 1
    assert np.allclose(frames.times_s, [0.5, 2.5])
    with pytest.raises(MediaError) as error:
        decode_frames(path, [15])
    assert error.value.kind == "corrupt"
