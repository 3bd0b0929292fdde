"""Seeking: whatever the demuxer does, the packets that come are the ones that were asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.hard_inputs import blocks
from tests.video.clips import write_blocks
from vidpipe.errors import MediaError
from vidpipe.video import reader
from vidpipe.video.decode import decode_frames
from vidpipe.video.plan import Run
from vidpipe.video.reader import PacketReader
from vidpipe.video.timeline import read_timeline
from vidpipe.video.walk import Walker

HARD = Path(__file__).parents[1] / "hard_inputs" / "video"
FILES = sorted(path for path in HARD.iterdir() if 0 < path.stat().st_size < 50_000 and path.suffix != ".tar")


@pytest.fixture
def always_seek(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "seek_pays", lambda _, position, target: position != target)


@pytest.mark.usefixtures("always_seek")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_sought_frames_are_the_walked_ones(path: Path) -> None:
    try:
        timeline = read_timeline(path)
        everything = decode_frames(path, range(len(timeline)), timeline=timeline)
    except MediaError:
        pytest.skip("no frames to compare")
    places = list(range(len(everything.indices)))[:: max(1, len(everything.indices) // 4)]
    asked = everything.indices[places]
    sought = decode_frames(path, asked.tolist(), timeline=timeline)
    assert np.array_equal(sought.pixels, everything.pixels[places])
    assert np.array_equal(sought.times_s, everything.times_s[places])


@pytest.mark.usefixtures("always_seek")
@pytest.mark.parametrize("offset", [-3, 3, 99])
def test_a_demuxer_that_lands_elsewhere_is_found_out(
    offset: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clip = write_blocks(tmp_path / "clip.mp4")
    timeline = read_timeline(clip)

    class WrongContainer:
        """Lands `offset` packets from where it was asked to."""

        def __init__(self, container: Any) -> None:
            self._container = container

        def __getattr__(self, name: str) -> Any:
            return getattr(self._container, name)

        def seek(self, ticks: int, **options: Any) -> None:
            self._container.seek(ticks + offset * 1600, any_frame=True, **options)

    with PacketReader(clip, timeline.stream_index, timeline.packets) as packets:
        packets._container = WrongContainer(packets._container)
        came = list(packets.read(Run(20, 24)))
    assert [number for number, _ in came] == [20, 21, 22, 23, 24]
    assert [packet.pts for _, packet in came] == timeline.packets.pts[20:25].tolist()


def test_only_what_is_needed_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clip = write_blocks(tmp_path / "clip.mp4", numbers=range(60), options={"g": "10", "bf": "0"})
    timeline = read_timeline(clip)
    fed: list[int] = []
    feed = Walker.feed

    def count(self: Walker, number: int, packet: Any, **options: Any) -> Any:
        fed.append(number)
        return feed(self, number, packet, **options)

    monkeypatch.setattr(Walker, "feed", count)
    frames = decode_frames(clip, [3, 42], timeline=timeline)
    assert [blocks.read(picture) for picture in frames.pixels] == [3, 42]
    assert fed == [0, 1, 2, 3, 40, 41, 42]


def test_repeated_frames_count_against_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clip = write_blocks(tmp_path / "a.mp4", size_wh=(128, 96))
    monkeypatch.setattr("vidpipe.video.decode._LIMIT_BYTES", 10 * 128 * 96 * 3)
    assert len(decode_frames(clip, [3] * 10).pixels) == 10
    with pytest.raises(MediaError, match="11 frames of 128 x 96 need") as caught:
        decode_frames(clip, [3] * 11)
    assert caught.value.kind == "too_large"
