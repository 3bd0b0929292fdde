"""Which packets become shown frames, in which order.

Mostly the packets alone tell: sort by presentation time, leave out the hidden
ones. Where they do not (missing or repeated times, a start that no decoder can
enter, a torn end) decoding tells, as far as it is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vidpipe.video.container import PathLike, open_media
from vidpipe.video.packets import NO_TICKS, PacketTable, StreamPackets
from vidpipe.video.walk import Walker, spoiled

_FIELD_TRIAL_PACKETS = 32
_MARK_IS_OFF_BY = 3
_NO_PICTURE_BYTES = 16
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
    context = stream.codec_context
    fields = context.name in _MAY_STORE_FIELDS and context.field_order > 1
    if not packets_suffice(table):
        return _by_decoding(path, stream, table, fields)
    ranges = _doubtful_ranges(table, fields)
    trial = _decode_ranges(path, stream, ranges)
    tried = sum(end - start for start, end in ranges)
    if fields and len(trial.order) <= tried // 2 + 1 < tried:
        # Two packets a picture: no packet stands for a frame.
        return _by_decoding(path, stream, table, fields)
    bad = spoiled(table, trial.failed.union(damaged_packets(table)))
    bad[: int(np.argmax(table.key))] = True
    delivered = np.ones(len(table), np.bool_)
    for start, end in ranges:
        delivered[start:end] = False
    delivered[[packet for packet, _ in trial.order]] = True
    packets = np.flatnonzero(~table.hidden & ~bad & delivered)
    packets = packets[np.argsort(table.pts[packets], kind="stable")]
    return Shown(packets, table.pts[packets], int((bad & ~table.hidden).sum()))


def packets_suffice(table: PacketTable) -> bool:
    """Return whether the packets alone tell order and times.

    They do when times are stated, none is repeated, the clock never goes back and
    there is a key frame.
    """
    pts = table.pts[~table.hidden]
    dts = table.dts[table.dts != NO_TICKS]
    return bool(
        len(pts)
        and table.key.any()
        and (pts != NO_TICKS).all()
        and len(np.unique(pts)) == len(pts)
        and (np.diff(dts) >= 0).all()
    )


def damaged_packets(table: PacketTable) -> list[int]:
    """Return the numbers of the packets that the demuxer calls damaged, rightly.

    It also marks sound ones: those that share a torn last piece of the file with
    others, and one just before the place where two recordings were joined, for
    their packet counters do not match (there the clock goes back).
    """
    dts = table.dts
    joints = np.flatnonzero((np.diff(dts) < 0) & (dts[:-1] != NO_TICKS) & (dts[1:] != NO_TICKS)) + 1
    damaged = np.flatnonzero(table.damaged[: _torn_end(table)])
    return [int(n) for n in damaged if not ((joints > n) & (joints <= n + _MARK_IS_OFF_BY)).any()]


def _torn_end(table: PacketTable) -> int:
    """Return the first packet of the run of marked ones at the end (the mark may miss the last ones)."""
    marked = np.flatnonzero(table.damaged)
    if len(marked) == 0 or marked[-1] < len(table) - _MARK_IS_OFF_BY:
        return len(table)
    sound_before = np.flatnonzero(~table.damaged[: marked[-1]])
    return int(sound_before[-1]) + 1 if len(sound_before) else 0


def _doubtful_ranges(table: PacketTable, fields: bool) -> list[tuple[int, int]]:
    """Return the half-open ranges of packets that must be decoded to know what is shown, in order.

    The start: pictures before the first key frame, or referring back across it,
    cannot be shown, and interlaced streams may store a frame as two packets. The
    end: what is left of a torn piece.
    """
    ranges: list[tuple[int, int]] = []
    keys = np.flatnonzero(table.key)
    second = int(keys[1]) if len(keys) > 1 else len(table)
    refers_back = bool((table.pts[keys[0] : second] < table.pts[keys[0]]).any())
    if keys[0] > 0 or refers_back:
        ranges.append((0, second))
    elif fields:
        ranges.append((0, min(_FIELD_TRIAL_PACKETS, len(table))))
    torn = _torn_end(table)
    if torn < len(table):
        start = int(keys[max(0, int(np.searchsorted(keys, torn, side="right")) - 1)])
        if ranges and start <= ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], len(table))
        else:
            ranges.append((start, len(table)))
    return ranges


@dataclass(frozen=True)
class _Trial:
    order: list[tuple[int, int]]
    """(packet number, ticks) of every picture, in output order."""
    failed: frozenset[int]


def _decode_ranges(path: PathLike, stream: Any, ranges: list[tuple[int, int]]) -> _Trial:
    """Decode the packets of `ranges`; those between are read, not decoded."""
    order: list[tuple[int, int]] = []
    if not ranges:
        return _Trial(order, frozenset())
    with open_media(path) as container:
        again = container.streams[stream.index]
        walker = Walker(again)
        left = list(ranges)
        for number, packet in enumerate(StreamPackets(container, again)):
            if number == left[0][1]:
                order += [(d.packet, _ticks(d.frame)) for d in walker.finish()]
                walker.restart()
                left.pop(0)
                if not left:
                    break
            if number >= left[0][0]:
                order += [(d.packet, _ticks(d.frame)) for d in walker.feed(number, packet)]
        if left:
            order += [(d.packet, _ticks(d.frame)) for d in walker.finish()]
    return _Trial(order, frozenset(walker.failed))


def _ticks(frame: Any) -> int:
    """Return the picture's time as players guess it: the presentation time, else the decode time."""
    ticks = frame.dts if frame.pts is None else frame.pts
    return NO_TICKS if ticks is None else int(ticks)


def _by_decoding(path: PathLike, stream: Any, table: PacketTable, fields: bool) -> Shown:
    trial = _decode_ranges(path, stream, [(0, len(table))])
    bad = spoiled(table, trial.failed.union(damaged_packets(table)))
    if not fields:
        bad |= _undelivered(table, trial)
    sound = [(packet, ticks) for packet, ticks in trial.order if not bad[packet]]
    # A frame is known by its packet: of several from one packet only the first can be named.
    named: dict[int, int] = {}
    for packet, ticks in sound:
        named.setdefault(packet, ticks)
    return Shown(
        packets=np.array(list(named), np.int64),
        ticks=np.array(list(named.values()), np.int64),
        missing=int((bad & ~table.hidden).sum()) + len(sound) - len(named),
    )


def _undelivered(table: PacketTable, trial: _Trial) -> npt.NDArray[np.bool_]:
    """Return which packets of a whole decoding gave no picture though they should, bool [N].

    Not counted: packets too small for a picture (AVI's "as before"), and the
    leading pictures of the first key frame, which refer to what was before the file.
    """
    silent = (table.size > _NO_PICTURE_BYTES) & ~table.hidden
    silent[[packet for packet, _ in trial.order]] = False
    if table.key.any():
        first = int(np.argmax(table.key))
        silent[first:] &= table.pts[first:] >= table.pts[first]
    return silent
