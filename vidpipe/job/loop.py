"""The loop of a run: clips are decoded ahead, requests go in, replies come out and are recorded.

How many requests, and how many bytes of frames, are in flight is bounded, so memory
does not grow with the run.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from vidpipe.engine.interface import Engine, Reply, Request
from vidpipe.errors import MediaError, RowError
from vidpipe.job import outcome
from vidpipe.job.decoded import Decoded
from vidpipe.job.prepare import PreparedClip, SeenClip
from vidpipe.job.settings import ResolvedRow, Resolver
from vidpipe.plan.clips import PlannedRow
from vidpipe.record.row import OutputRow

REQUESTS_IN_FLIGHT = 64
FRAME_BYTES_IN_FLIGHT = 1 << 30
"""Decoded bytes of all clips whose requests wait in the engine; one clip larger than that passes alone."""
IDLE_WAIT_S = 0.05


@dataclass(frozen=True)
class _InFlight:
    planned: PlannedRow
    seen: SeenClip
    prepare_s: float


class Loop:
    """Answers clips with an engine.

    Args:
        engine: A started engine.
        resolver: Makes the settings that rows record.
        special_tokens: The recipe's choice, for each request.
        record: Called with every finished row.
        tick: Called in every round.
    """

    def __init__(
        self,
        engine: Engine,
        resolver: Resolver,
        special_tokens: Literal["literal", "refuse"],
        record: Callable[[OutputRow, ResolvedRow], None],
        tick: Callable[[], None],
    ) -> None:
        self._engine, self._resolver, self._special_tokens = engine, resolver, special_tokens
        self._record, self._tick = record, tick
        self._ready: deque[tuple[PlannedRow, PreparedClip]] = deque()
        self._in_flight: dict[str, _InFlight] = {}

    def run(self, decoded: Decoded, stop: Callable[[], bool]) -> bool:
        """Answer everything that `decoded` brings; False when `stop` said so before the end."""
        while decoded or self._ready or self._in_flight:
            if stop():
                return False
            if not self._ready:
                self._take(decoded)
            while self._ready and self._has_room_for(self._ready[0][1]):
                self._submit(*self._ready.popleft())
            replies = self._engine.poll()
            for reply in replies:
                self._finish(reply)
            self._tick()
            if not replies and not self._in_flight and not self._ready:
                decoded.wait(IDLE_WAIT_S)
        return True

    def _take(self, decoded: Decoded) -> None:
        """Move the rows of the next decoded clip to the front of the engine, or record why they cannot run."""
        finished = decoded.next_finished()
        if finished is None:
            return
        clip, result = finished
        if isinstance(result, MediaError):
            for planned in clip.rows:
                resolved = self._resolver.resolve(planned.settings)
                self._record(outcome.unreadable(planned, resolved, result), resolved)
        else:
            self._ready.extend((planned, result) for planned in clip.rows)

    def _has_room_for(self, prepared: PreparedClip) -> bool:
        if not self._in_flight:
            return True
        if len(self._in_flight) >= REQUESTS_IN_FLIGHT:
            return False
        clips = {id(entry.seen): entry.seen.frame_bytes for entry in self._in_flight.values()}
        clips[id(prepared.seen)] = prepared.seen.frame_bytes
        return sum(clips.values()) <= FRAME_BYTES_IN_FLIGHT

    def _submit(self, planned: PlannedRow, prepared: PreparedClip) -> None:
        started = time.perf_counter()
        request = Request(
            id=planned.row.id,
            messages=planned.messages,
            generation=planned.settings.generation,
            video=prepared.video,
            special_tokens=self._special_tokens,
        )
        try:
            self._engine.submit(request)
        except RowError as error:
            resolved = self._resolver.resolve(planned.settings)
            self._record(outcome.refused(planned, prepared.seen, resolved, error), resolved)
            return
        self._in_flight[request.id] = _InFlight(planned, prepared.seen, time.perf_counter() - started)

    def _finish(self, reply: Reply) -> None:
        entry = self._in_flight.pop(reply.id, None)
        if entry is None:
            return  # a second reply to one request: the first one counts
        resolved = self._resolver.resolve(entry.planned.settings)
        self._record(outcome.answered(entry.planned, entry.seen, resolved, reply, entry.prepare_s), resolved)
