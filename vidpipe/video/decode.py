"""The frames at given places, with the index and the time that each really has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vidpipe.errors import MediaError
from vidpipe.video.container import PathLike, display_name, open_media
from vidpipe.video.orientation import orientation_of_frame
from vidpipe.video.packets import is_flush
from vidpipe.video.pixels import RgbWriter
from vidpipe.video.timeline import Timeline, read_timeline
from vidpipe.video.walk import Decoded, Walker, spoiled


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
    `missing`. `size_wh` is the size to deliver, the display size by default.
    MediaError `corrupt` when no asked frame decodes, `bad_window` for an index
    outside the timeline.
    """
    timeline = timeline or read_timeline(path)
    name = display_name(path)
    asked = np.asarray(indices, np.int64)
    if len(asked) == 0 or asked.min() < 0 or asked.max() >= len(timeline):
        raise MediaError("bad_window", f"{name}: frames {_span(asked)} asked, the file shows 0 to {len(timeline) - 1}")
    places = np.unique(asked)
    slot_of_packet = {int(timeline.packet_of_frame[index]): slot for slot, index in enumerate(places)}
    pixels: npt.NDArray[np.uint8] | None = None
    writer: RgbWriter | None = None
    filled: set[int] = set()
    with open_media(path) as container:
        stream = container.streams[timeline.stream_index]
        walker = Walker(stream, threads)
        for picture in _pictures(container, stream, walker, set(slot_of_packet)):
            slot = slot_of_packet.get(picture.packet)
            if slot is None:
                continue
            if writer is None or pixels is None:
                orientation, _ = orientation_of_frame(picture.frame)
                context = stream.codec_context
                display_wh = orientation.display_wh((context.width, context.height))
                writer = RgbWriter(orientation, display_wh)
                width, height = size_wh or display_wh
                pixels = np.empty((len(places), height, width, 3), np.uint8)
            writer.write(picture.frame, pixels[slot])
            filled.add(slot)
    bad = spoiled(timeline.packets, walker.failed)
    sound = np.array([s in filled and not bad[timeline.packet_of_frame[i]] for s, i in enumerate(places)], np.bool_)
    slots = np.searchsorted(places, asked)
    kept = slots[sound[slots]]
    if pixels is None or len(kept) == 0:
        raise MediaError("corrupt", f"{name}: none of the {len(asked)} frames asked for can be decoded; fetch it again")
    indices_kept = places[kept]
    if not np.array_equal(kept, np.arange(len(places))):
        pixels = pixels[kept]
    return Frames(pixels, indices_kept, timeline.times_s[indices_kept], len(asked) - len(kept), timeline.notes)


def _pictures(container: Any, stream: Any, walker: Walker, wanted: set[int]) -> Iterator[Decoded]:
    last = max(wanted)
    for number, packet in enumerate(container.demux(stream)):
        if is_flush(packet):
            break
        yield from walker.feed(number, packet, wanted=number in wanted)
        if number >= last:
            break
    yield from walker.finish()


def _span(asked: npt.NDArray[np.int64]) -> str:
    return "none" if len(asked) == 0 else f"{asked.min()} to {asked.max()}"
