"""The cheapest way to the asked frames: which packets to decode, and how to get to them.

A frame needs its packet and all from the key frame before it. What lies between
two such runs is not decoded; it is read past when that is quick, else sought over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vidpipe.video.packets import NO_TICKS, PacketTable

_READ_S_PER_PACKET = 3e-6
_READ_S_PER_BYTE = 3e-10
_SEEK_S = 2e-4
"""Measured by tests/perf/video_costs.py on a local MP4 file in the page cache."""


@dataclass(frozen=True)
class Run:
    """Packets to decode one after another, both ends included; `first` is a key frame or 0."""

    first: int
    last: int


def plan_runs(table: PacketTable, wanted: Iterable[int], keys_back: int = 0) -> list[Run]:
    """Return the fewest packets to decode for the pictures of packets `wanted`, in file order, apart.

    With `keys_back` each run starts that many key frames earlier.
    """
    runs: list[Run] = []
    keys = np.flatnonzero(table.key)
    for number in sorted(set(wanted)):
        entry = _entry(table, keys, number, keys_back)
        if runs and entry <= runs[-1].last + 1:
            runs[-1] = Run(runs[-1].first, number)
        else:
            runs.append(Run(entry, number))
    return runs


def _entry(table: PacketTable, keys: npt.NDArray[np.int64], number: int, keys_back: int) -> int:
    """Return the packet where decoding must start for the picture of packet `number`.

    The last key frame at or before it, but for a picture shown before that key
    frame, which refers back across it, the one before; `keys_back` earlier still. 0
    where times are not stated: which pictures refer back is then unknown.
    """
    shown_at = table.pts[number]
    at = int(np.searchsorted(keys, number, side="right")) - 1
    while at >= 0 and table.pts[keys[at]] > shown_at:
        at -= 1
    at -= keys_back
    if at < 0 or NO_TICKS in (shown_at, table.pts[keys[at]]):
        return 0
    return int(keys[at])


def seek_pays(table: PacketTable, position: int, target: int) -> bool:
    """Return whether seeking from packet `position` to `target` is quicker than reading past."""
    between = table.size[position:target]
    return len(between) * _READ_S_PER_PACKET + float(between.sum()) * _READ_S_PER_BYTE > _SEEK_S


def can_seek(table: PacketTable) -> bool:
    """Return whether a place in the file can be told by its time stamps: stated, unique, never going back."""
    dts = table.dts[table.dts != NO_TICKS]
    pts = table.pts
    stated = (pts != NO_TICKS).all() and len(np.unique(pts)) == len(pts)
    return bool(stated and len(dts) and (np.diff(dts) >= 0).all())
