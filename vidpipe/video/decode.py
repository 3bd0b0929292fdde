"""The frames at given places, with the index and the time that each really has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import av
import numpy as np
import numpy.typing as npt

from vidpipe.errors import MediaError
from vidpipe.video.container import PathLike, display_name
from vidpipe.video.flat import flat_note
from vidpipe.video.orientation import orientation_of_frame
from vidpipe.video.pixels import RgbWriter
from vidpipe.video.plan import Run, plan_runs
from vidpipe.video.reader import PacketReader
from vidpipe.video.timeline import Timeline, read_timeline
from vidpipe.video.walk import Decoded, Walker, spoiled

_LIMIT_BYTES = 16 * 2**30
"""One request's pixels: a header may claim any size."""
# Decoders that can leave out a picture without harm to others, decided packet by packet.
_SKIP_BY_PACKET = frozenset(("h264", "hevc", "mpeg1video", "mpeg2video", "mpeg4"))


@dataclass(frozen=True)
class Frames:
    """Decoded frames in the order they were asked for, each with what it really is."""

    pixels: npt.NDArray[np.uint8]
    """[T, H, W, 3] RGB in display orientation."""
    indices: npt.NDArray[np.int64]
    """Index of each frame in the timeline, [T]."""
    times_s: npt.NDArray[np.float64]
    """Presentation time of each frame, [T]."""
    missing: int
    """Asked for, but not decodable."""
    notes: tuple[str, ...]


def decode_frames(
    path: PathLike,
    indices: Sequence[int],
    *,
    timeline: Timeline | None = None,
    size_wh: tuple[int, int] | None = None,
    threads: int = 1,
) -> Frames:
    """Decode the frames at `indices` of the file's timeline (read here when not given).

    Repeated indices give repeated frames. A frame that does not decode, or that a
    decoder could only have made up after damage, is left out and counted in
    `missing`. `size_wh` is the size to deliver, the display size by default. One thread
    is best where several clips are decoded side by side; more help only streams whose
    pictures are cut into slices.
    MediaError `corrupt` when no asked frame decodes, `bad_window` for an index
    outside the timeline.
    """
    timeline = timeline or read_timeline(path)
    name = display_name(path)
    asked = np.asarray(indices, np.int64)
    if len(asked) == 0 or asked.min() < 0 or asked.max() >= len(timeline):
        raise MediaError("bad_window", f"{name}: frames {_span(asked)} asked; it has {len(timeline)} from 0")
    places = np.unique(asked)
    packets = timeline.packet_of_frame[places]
    pictures = _Pictures(name, packets, size_wh)
    _collect_all(pictures, path, timeline, packets, threads)
    slots = np.searchsorted(places, asked)
    kept = slots[pictures.sound[slots]]
    if pictures.pixels is None or len(kept) == 0:
        raise MediaError("corrupt", f"{name}: none of the {len(asked)} frames asked for can be decoded")
    pixels = pictures.pixels
    if not np.array_equal(kept, np.arange(len(places))):
        _refuse_too_large(name, len(kept), pixels.shape[2], pixels.shape[1])  # one frame may be asked for often
        pixels = pixels[kept]
    shown = places[kept]
    notes = list(timeline.notes)
    missing = len(asked) - len(kept)
    if missing:
        notes.append(f"partial: {missing} of {len(asked)} frames asked for do not decode")
    if (flat := flat_note(pixels)) is not None:
        notes.append(flat)
    return Frames(pixels, shown, timeline.times_s[shown], missing, tuple(notes))


def _collect_all(
    pictures: _Pictures, path: PathLike, timeline: Timeline, packets: npt.NDArray[np.int64], threads: int
) -> None:
    """Get the pictures of `packets`, by the short way first.

    A key frame may be none, or skipping may have taken a needed picture: what did not
    come is tried again from earlier and earlier, without skipping. A packet that fails
    in the same way from there is damaged, and its pictures are given up.
    """
    table = timeline.packets
    runs = plan_runs(table, packets.tolist())
    failed = pictures.collect(path, timeline, runs, threads, skip_unwanted=True)
    lost = packets[~pictures.sound]
    keys_back = 1
    while len(lost):
        runs = plan_runs(table, lost.tolist(), keys_back)
        failed_again = pictures.collect(path, timeline, runs, threads, skip_unwanted=False)
        damaged = spoiled(table, failed & failed_again)
        lost = packets[~pictures.sound & ~damaged[packets]]
        if all(run.first == 0 for run in runs):
            return
        failed = failed_again
        keys_back *= 2


class _Pictures:
    """The pictures of chosen packets, as they come out of the decoder."""

    def __init__(self, name: str, packets: npt.NDArray[np.int64], size_wh: tuple[int, int] | None) -> None:
        self._name = name
        self._slot_of_packet = {int(packet): slot for slot, packet in enumerate(packets)}
        self._size_wh = size_wh
        self._writer: RgbWriter | None = None
        self._stored_wh = (0, 0)
        self.pixels: npt.NDArray[np.uint8] | None = None
        self.sound = np.zeros(len(packets), np.bool_)

    def collect(
        self, path: PathLike, timeline: Timeline, runs: Sequence[Run], threads: int, *, skip_unwanted: bool
    ) -> set[int]:
        """Decode `runs`, keep the sound pictures among those not there yet; returns which packets failed."""
        wanted = {packet for packet, slot in self._slot_of_packet.items() if not self.sound[slot]}
        table = timeline.packets
        came: list[int] = []
        with PacketReader(path, timeline.stream_index, table) as reader:
            walker = Walker(reader.stream, threads)
            # Before decoding: the size may change in the middle, and all frames get the stream's.
            self._stored_wh = (reader.stream.codec_context.width, reader.stream.codec_context.height)
            context = reader.stream.codec_context
            # Of two fields that make one picture only one packet is named.
            skip_unwanted = skip_unwanted and context.name in _SKIP_BY_PACKET and context.field_order <= 1
            for run in runs:
                for number, packet in reader.read(run):
                    decode_fully = number in wanted or not skip_unwanted
                    came += self._keep(walker.feed(number, packet, wanted=decode_fully), wanted)
                came += self._keep(walker.finish(), wanted)
                walker.restart()
        bad = spoiled(table, walker.failed)
        for packet in came:
            self.sound[self._slot_of_packet[packet]] = not bad[packet]
        return walker.failed

    def _keep(self, pictures: Iterator[Decoded], wanted: set[int]) -> list[int]:
        kept: list[int] = []
        for picture in pictures:
            if picture.packet in wanted:
                with suppress(av.error.FFmpegError):  # no conversion for what its damaged header claims
                    self._write(picture.frame, self._slot_of_packet[picture.packet])
                    kept.append(picture.packet)
        return kept

    def _write(self, frame: Any, slot: int) -> None:
        if self._writer is None or self.pixels is None:
            orientation, _ = orientation_of_frame(frame)
            display_wh = orientation.display_wh(self._stored_wh)
            self._writer = RgbWriter(orientation, display_wh)
            width, height = self._size_wh or display_wh
            _refuse_too_large(self._name, len(self.sound), width, height)
            self.pixels = np.empty((len(self.sound), height, width, 3), np.uint8)
        self._writer.write(frame, self.pixels[slot])


def _refuse_too_large(name: str, frames: int, width: int, height: int) -> None:
    needed = frames * height * width * 3
    if needed > _LIMIT_BYTES:
        raise MediaError(
            "too_large",
            f"{name}: {frames} frames of {width} x {height} need {needed / 2**30:.0f} GiB; ask for fewer or smaller"
            " ones",
        )


def _span(asked: npt.NDArray[np.int64]) -> str:
    return "none" if len(asked) == 0 else f"{asked.min()} to {asked.max()}"
