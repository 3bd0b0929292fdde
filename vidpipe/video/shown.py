"""Which packets become shown frames, in which order.

Mostly the packets alone tell: sort by presentation time, leave out the hidden
ones. Where they do not (missing or repeated times, a start that no decoder can
enter) decoding tells, as far as it is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vidpipe.video.container import PathLike, open_media
from vidpipe.video.packets import NO_TICKS, PacketTable, is_flush
from vidpipe.video.walk import Walker, spoiled

_FIELD_TRIAL_PACKETS = 32
_MAY_STORE_FIELDS = frozenset(("h264", "hevc", "vc1"))


@dataclass(frozen=True)
class Shown:
    """The shown frames of a stream, in presentation order."""

    packets: npt.NDArray[np.int64]
    """The packet number of each frame, [N]."""
    ticks: npt.NDArray[np.int64]
    """Presentation time of each frame, [N]; NO_TICKS when not stated."""
    missing: int
    """Pictures that are damaged, or cannot be decoded without what is missing."""


def shown_packets(path: PathLike, stream: Any, table: PacketTable) -> Shown:
    """Find the shown frames of `stream`, whose packets are `table`; decodes from `path` only where needed."""
    # A transport stream also marks whole packets after a jump of its counter: only decoding tells.
    if not packets_suffice(table) or table.damaged[:-1].any():
        return _from_pictures(table, _decode_head(path, stream, table, len(table)))
    bad = spoiled(table, np.flatnonzero(table.damaged).tolist())
    count = _doubtful_packets(stream, table)
    if not count:
        return _by_time(table, ~table.hidden & ~bad, int((bad & ~table.hidden).sum()))
    head = _decode_head(path, stream, table, count)
    if len(head.order) <= count // 2 + 1 < count and stream.codec_context.field_order > 1:
        # Two packets a picture: no packet stands for a frame.
        return _from_pictures(table, _decode_head(path, stream, table, len(table)))
    bad |= spoiled(table, head.failed)
    bad[: int(np.argmax(table.key))] = True
    shown = ~table.hidden & ~bad
    decoded = np.zeros(len(table), np.bool_)
    decoded[[packet for packet, _ in head.order]] = True
    shown[:count] &= decoded[:count]
    return _by_time(table, shown, int((bad & ~table.hidden).sum()))


def packets_suffice(table: PacketTable) -> bool:
    """Return whether the packets alone tell order and times: all stated, none repeated, clock never back."""
    pts = table.pts[~table.hidden]
    dts = table.dts[table.dts != NO_TICKS]
    return bool(len(pts) and (pts != NO_TICKS).all() and len(np.unique(pts)) == len(pts) and (np.diff(dts) > 0).all())


def _doubtful_packets(stream: Any, table: PacketTable) -> int:
    """Return how many packets to decode because the start may hide frames; 0 when it is plain.

    Pictures before the first key frame, or referring back across it, cannot be
    shown. Interlaced streams may store a frame as two packets.
    """
    keys = np.flatnonzero(table.key)
    if len(keys) == 0:
        return len(table)
    end = int(keys[1]) if len(keys) > 1 else len(table)
    refers_back = bool((table.pts[keys[0] : end] < table.pts[keys[0]]).any())
    if keys[0] > 0 or refers_back:
        return end
    if stream.codec_context.name in _MAY_STORE_FIELDS and stream.codec_context.field_order > 1:
        return min(_FIELD_TRIAL_PACKETS, len(table))
    return 0


@dataclass(frozen=True)
class _Head:
    order: list[tuple[int, int]]
    """(packet number, ticks) of every picture, in output order."""
    failed: frozenset[int]


def _decode_head(path: PathLike, stream: Any, table: PacketTable, count: int) -> _Head:
    order: list[tuple[int, int]] = []
    with open_media(path) as container:
        again = container.streams[stream.index]
        walker = Walker(again)
        for number, packet in enumerate(container.demux(again)):
            if number >= count or is_flush(packet):
                break
            order += [(d.packet, _ticks(d.frame)) for d in walker.feed(number, packet)]
        order += [(d.packet, _ticks(d.frame)) for d in walker.finish()]
    return _Head(order, frozenset(walker.failed))


def _ticks(frame: Any) -> int:
    return NO_TICKS if frame.pts is None else int(frame.pts)


def _from_pictures(table: PacketTable, head: _Head) -> Shown:
    bad = spoiled(table, head.failed)
    sound = [(packet, ticks) for packet, ticks in head.order if not bad[packet]]
    return Shown(
        packets=np.array([packet for packet, _ in sound], np.int64),
        ticks=np.array([ticks for _, ticks in sound], np.int64),
        missing=int((bad & ~table.hidden).sum()),
    )


def _by_time(table: PacketTable, shown: npt.NDArray[np.bool_], missing: int) -> Shown:
    packets = np.flatnonzero(shown)
    packets = packets[np.argsort(table.pts[packets], kind="stable")]
    return Shown(packets, table.pts[packets], missing)
