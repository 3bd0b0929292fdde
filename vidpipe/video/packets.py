"""The packets of one stream in file order: what demuxing tells without decoding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import av
import numpy as np
import numpy.typing as npt
from av.stream import Discard

NO_TICKS = np.iinfo(np.int64).min
"""Stands where the file states no time stamp."""


@dataclass(frozen=True)
class PacketTable:
    """One entry a packet, in file (decode) order."""

    pts: npt.NDArray[np.int64]
    """Presentation time in ticks of the stream's time base; NO_TICKS when not stated."""
    dts: npt.NDArray[np.int64]
    """Decode time in ticks; NO_TICKS when not stated."""
    duration: npt.NDArray[np.int64]
    """In ticks; 0 when not stated."""
    size: npt.NDArray[np.int64]
    """In bytes."""
    place: npt.NDArray[np.int64]
    """Offset in the file in bytes; -1 when the demuxer does not say."""
    key: npt.NDArray[np.bool_]
    """The file says that decoding can start here."""
    hidden: npt.NDArray[np.bool_]
    """Decoded, but never shown: before an edit list's start, or a codec's invisible reference."""
    damaged: npt.NDArray[np.bool_]
    """The demuxer knows that bytes are missing."""
    read_error: bool
    """Demuxing ended with an error instead of the end of the file."""

    def __len__(self) -> int:
        return len(self.pts)

    def __post_init__(self) -> None:
        lengths = {len(getattr(self, f.name)) for f in fields(self) if f.name != "read_error"}
        assert len(lengths) == 1, lengths


class StreamPackets:
    """The packets of one stream from the container's present position; iterate once.

    Ends where the file ends or cannot be read further; `read_error` tells which.
    """

    def __init__(self, container: Any, stream: Any) -> None:
        # The packets of other streams would be read, copied and thrown away.
        for other in container.streams:
            if other.index != stream.index:
                other.discard = Discard.all
        self._packets = container.demux(stream)
        self.read_error = False

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            packet = next(self._packets)
        except (av.error.FFmpegError, OSError, IndexError):  # IndexError: streams that appear on the way
            self.read_error = True
            raise StopIteration from None
        if packet.size == 0 and packet.pts is None and packet.dts is None:  # PyAV's mark for the end
            raise StopIteration
        return packet


def read_packets(container: Any, stream: Any) -> PacketTable:
    """Demux all of `stream`.

    Costs one read of the file and about 3 microseconds a packet; decodes nothing.
    """
    codec = stream.codec_context.name
    packets = StreamPackets(container, stream)
    rows = [_row(codec, packet) for packet in packets]
    table = np.array(rows, np.int64).reshape(len(rows), 8).T.copy()
    pts, dts, duration, size, place = table[:5]
    key, hidden, damaged = table[5:].astype(np.bool_)
    return PacketTable(pts, dts, duration, size, place, key, hidden, damaged, packets.read_error)


def _row(codec: str, packet: Any) -> tuple[int, ...]:
    return (
        NO_TICKS if packet.pts is None else packet.pts,
        NO_TICKS if packet.dts is None else packet.dts,
        packet.duration or 0,
        packet.size,
        -1 if packet.pos is None else packet.pos,
        packet.is_keyframe,
        packet.is_discard or _invisible(codec, packet),
        packet.is_corrupt,
    )


def _invisible(codec: str, packet: Any) -> bool:
    # VP8 stores alternate reference pictures as packets of their own; bit 4 of the
    # first byte is show_frame (RFC 6386, section 9.1).
    return codec in ("vp8", "libvpx") and packet.size > 0 and not (memoryview(packet)[0] >> 4) & 1
