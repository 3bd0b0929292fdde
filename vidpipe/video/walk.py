"""Decode packets one after another and say for every picture which packet it came from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import av
import numpy as np
import numpy.typing as npt

from vidpipe.video.packets import NO_TICKS, PacketTable


@dataclass(frozen=True)
class Decoded:
    """One picture and the number of its packet in file order."""

    packet: int
    frame: Any


class Walker:
    """Feeds one stream's packets to its decoder; pictures come out with their packet's number.

    Numbers of packets that failed, or whose picture the decoder calls corrupt,
    gather in `failed`; `spoiled` says what else cannot be trusted for it.
    """

    def __init__(self, stream: Any, threads: int = 1) -> None:
        self._context = stream.codec_context
        self._context.thread_count = threads
        # A frame-threaded decoder reports errors at later packets: it would be unknown which one failed.
        self._context.thread_type = "SLICE"
        self._context.copy_opaque = True
        self.failed: set[int] = set()

    def restart(self) -> None:
        """Forget all references, because the next packet is a key frame elsewhere in the file."""
        self._context.flush_buffers()

    def feed(self, number: int, packet: Any, *, wanted: bool = True) -> Iterator[Decoded]:
        """Decode `packet`, number `number` of the file; yields the pictures that come out now.

        With `wanted` false the picture may be skipped when no other one refers to it.
        """
        # PyAV keeps the object under its address: a small int, which Python shares, would be
        # dropped for everyone when any one packet of the process that carries it is freed.
        packet.opaque = (number,)
        self._context.skip_frame = "DEFAULT" if wanted else "NONREF"
        return self._decode(packet, number)

    def finish(self) -> Iterator[Decoded]:
        """Yield the pictures that the decoder still holds."""
        return self._decode(None, None)

    def _decode(self, packet: Any, number: int | None) -> Iterator[Decoded]:
        frames, complained = self._decode_listening(packet)
        if complained and number is not None:
            self.failed.add(number)
        for frame in frames:
            (origin,) = frame.opaque
            if frame.is_corrupt:
                self.failed.add(origin)
            else:
                yield Decoded(origin, frame)

    def _decode_listening(self, packet: Any) -> tuple[list[Any], bool]:
        # Many decoders conceal damage, report success and say so only in the log.
        try:
            with av.logging.Capture(local=self._context.thread_count == 1) as lines:
                return self._context.decode(packet), bool(lines)
        except (av.error.FFmpegError, OSError):
            return [], True


def spoiled(table: PacketTable, failed: Iterable[int]) -> npt.NDArray[np.bool_]:
    """Return for every packet, bool [N], whether its picture may show something else than the file's.

    After a failure a decoder conceals: it goes on with other frames' content and
    reports success. So everything from the failed packet up to the next key frame
    is spoiled, and of that key frame's pictures the leading ones, which are shown
    before it and refer back across it (open GOP). A failed leading picture spoils
    leading ones only: no later picture refers to them.
    """
    result = np.zeros(len(table), np.bool_)
    keys = np.flatnonzero(table.key)
    done = 0
    for number in sorted(failed):
        if number < done:
            continue
        at = int(np.searchsorted(keys, number, side="right"))
        end = int(keys[at]) if at < len(keys) else len(table)
        if at > 0 and (leading := _leading(table, int(keys[at - 1]), end))[number - keys[at - 1]]:
            result[number:end] |= leading[number - keys[at - 1] :]
            continue
        result[number:end] = True
        done = end
        if end < len(table):
            next_end = int(keys[at + 1]) if at + 1 < len(keys) else len(table)
            result[end:next_end] |= _leading(table, end, next_end)
    return result


def _leading(table: PacketTable, key: int, end: int) -> npt.NDArray[np.bool_]:
    """Return which of the packets from `key` to before `end` are shown before the key frame, bool [end - key]."""
    pts = table.pts[key:end]
    leading: npt.NDArray[np.bool_] = (pts < table.pts[key]) & (pts != NO_TICKS)
    return leading
