"""Bring the packets of one stream by number, seeking only where the landing can be checked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from typing import Any

import av
import numpy as np
import numpy.typing as npt

from vidpipe.video.container import PathLike, open_media
from vidpipe.video.packets import NO_TICKS, PacketTable, StreamPackets
from vidpipe.video.plan import Run, can_seek, seek_pays


class PacketReader:
    """Reads numbered packets forward; `stream` is PyAV's stream, whose decoder is the caller's.

    Demuxers land before, at or after the asked place. The first packet after a seek
    is looked up in the table; when it is not there, or too late, the file is opened
    again and read from its start, so that numbers are never guessed.
    """

    def __init__(self, path: PathLike, stream_index: int, table: PacketTable) -> None:
        self._path = path
        self._table = table
        self._stream_index = stream_index
        self._seekable = can_seek(table)
        self._stack = ExitStack()
        self._position = 0
        self._open()
        self.stream: Any = self._container.streams[stream_index]

    def __enter__(self) -> PacketReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def read(self, run: Run) -> Iterator[tuple[int, Any]]:
        """Yield (number, packet) for every packet of `run`; stops early where the file does."""
        if self._seekable and seek_pays(self._table, self._position, run.first):
            self._seek(run.first)
        due = run.first
        while due <= run.last:
            packet = self._next()
            if packet is None:
                return
            if self._seekable and not self._is_due(packet):
                self._start_over()  # after a seek the demuxer left packets out, or counts differently
                continue
            if self._position == due:
                yield due, packet
                due += 1
            self._position += 1

    def _next(self) -> Any | None:
        return None if self._position >= len(self._table) else next(self._packets, None)

    def _open(self) -> None:
        # What was opened before stays open: the caller's decoder came from it.
        self._container = self._stack.enter_context(open_media(self._path))
        self._packets: Iterator[Any] = self._demux()
        self._position = 0

    def _is_due(self, packet: Any) -> bool:
        """Whether `packet` can be the one at the present position; as `_matches`, without arrays of one element."""
        table, at = self._table, self._position
        if table.pts[at] != packet.pts or table.size[at] != packet.size:
            return False
        return packet.pos is None or table.place[at] in (packet.pos, -1)

    def _matches(self, packet: Any) -> npt.NDArray[np.bool_]:
        """Return which of the table's packets `packet` can be.

        Not by decode times: those are guessed anew after a seek.
        """
        table = self._table
        same: npt.NDArray[np.bool_] = (table.pts == packet.pts) & (table.size == packet.size)
        if packet.pos is not None:
            same &= (table.place == packet.pos) | (table.place == -1)
        return same

    def _demux(self) -> StreamPackets:
        return StreamPackets(self._container, self._container.streams[self._stream_index])

    def _start_over(self) -> None:
        self._seekable = False
        self._open()

    def _seek(self, target: int) -> None:
        table = self._table
        # Matroska's index holds presentation times, MP4's and the others' decode times.
        by_pts = "matroska" in self._container.format.name or table.dts[target] == NO_TICKS
        ticks = int(table.pts[target] if by_pts else min(table.dts[target], table.pts[target]))
        stream = self._container.streams[self._stream_index]
        try:
            self._container.seek(ticks, stream=stream, backward=True)
        except (av.error.FFmpegError, OSError):
            self._start_over()
            return
        self._packets = self._demux()
        first = next(self._packets, None)
        if first is None:
            self._start_over()
            return
        landed = self._matches(first).nonzero()[0]
        if len(landed) != 1 or landed[0] > target:
            self._start_over()
            return
        self._packets = chain((first,), self._packets)
        self._position = int(landed[0])
