"""The loop of a run: clips are decoded ahead, requests go in, replies come out and are recorded.

How many requests, and how many bytes of frames, are in flight is bounded, so memory
does not grow with the run.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from vidpipe.engine.interface import Engine, EngineInput, Reply
from vidpipe.errors import MediaError, RowError
from vidpipe.job import outcome
from vidpipe.job.decoded import Decoded
from vidpipe.job.feed import ShardFeed, Task
from vidpipe.job.settings import Resolver
from vidpipe.job.work import ClipInputs
from vidpipe.plan.clips import PlannedRow

REQUESTS_IN_FLIGHT = 64
MEDIA_BYTES_IN_FLIGHT = 1 << 30
"""Prepared bytes of all clips whose requests wait in the engine; one clip larger than that passes alone."""
IDLE_WAIT_S = 0.05
GRACE_S = 20.0
"""After a request to stop: time for what is in the engine to finish."""


@dataclass(frozen=True)
class _Ready:
    planned: PlannedRow
    engine_input: EngineInput | RowError
    clip: ClipInputs
    task: Task


@dataclass(frozen=True)
class _InFlight:
    planned: PlannedRow
    clip: ClipInputs
    task: Task


class Loop:
    """Answers the feed's clips with an engine.

    Args:
        engine: A started engine.
        feed: Where clips come from and rows go to.
        decoded: The same clips, decoded.
        resolver: Makes the settings that rows record.
    """

    def __init__(self, engine: Engine, feed: ShardFeed, decoded: Decoded, resolver: Resolver) -> None:
        self._engine, self._feed, self._decoded, self._resolver = engine, feed, decoded, resolver
        self._ready: deque[_Ready] = deque()
        self._in_flight: dict[str, _InFlight] = {}

    def run(self, stop: Callable[[], bool]) -> bool:
        """Answer until every shard is done; False when `stop` said so before.

        With nothing left to take, it waits for the processes that hold the other shards,
        and takes over from those that die.
        """
        while not stop():
            self._decoded.top_up()
            if not self._ready:
                self._take()
            while self._ready and self._has_room_for(self._ready[0]):
                self._submit(self._ready.popleft())
            answered = self._poll()
            if not answered and not self._in_flight and not self._ready:
                if self._decoded:
                    self._decoded.wait(IDLE_WAIT_S)
                elif self._feed.finished:
                    return True
                else:
                    time.sleep(IDLE_WAIT_S)
        deadline = time.monotonic() + GRACE_S
        while self._in_flight and time.monotonic() < deadline:
            self._poll()
        return False

    def _poll(self) -> bool:
        replies = self._engine.poll()
        for reply in replies:
            self._finish(reply)
        self._feed.tick()
        return bool(replies)

    def _take(self) -> None:
        """Make the rows of the next decoded clip ready, or record why they cannot run."""
        finished = self._decoded.next_finished()
        if finished is None:
            return
        task, result = finished
        if isinstance(result, MediaError):
            for planned in task.clip.rows:
                resolved = self._resolver.resolve(planned.settings)
                self._feed.record(task.writer, outcome.unreadable(planned, resolved, result), resolved)
            return
        for planned, engine_input in zip(task.clip.rows, result.inputs, strict=True):
            self._ready.append(_Ready(planned, engine_input, result, task))

    def _has_room_for(self, ready: _Ready) -> bool:
        if not self._in_flight:
            return True
        if ready.task.alone or any(entry.task.alone for entry in self._in_flight.values()):
            return False
        if len(self._in_flight) >= REQUESTS_IN_FLIGHT:
            return False
        clips = {id(entry.clip): entry.clip.media_bytes for entry in self._in_flight.values()}
        clips[id(ready.clip)] = ready.clip.media_bytes
        return sum(clips.values()) <= MEDIA_BYTES_IN_FLIGHT

    def _submit(self, ready: _Ready) -> None:
        planned, task = ready.planned, ready.task
        if not self._feed.holds(task.writer):
            return
        try:
            if isinstance(ready.engine_input, RowError):
                raise ready.engine_input
            task.writer.note_started(planned.row.id)
            self._engine.submit(ready.engine_input)
        except RowError as error:
            resolved = self._resolver.resolve(planned.settings)
            self._feed.record(task.writer, outcome.refused(planned, ready.clip.seen, resolved, error), resolved)
            return
        self._in_flight[planned.row.id] = _InFlight(planned, ready.clip, task)

    def _finish(self, reply: Reply) -> None:
        entry = self._in_flight.pop(reply.id, None)
        if entry is None:
            return  # a second reply to one request: the first one counts
        resolved = self._resolver.resolve(entry.planned.settings)
        attempt = 1 + entry.task.writer.deaths[reply.id]
        row = outcome.answered(entry.planned, entry.clip.seen, resolved, reply, entry.clip.prepare_s, attempt)
        self._feed.record(entry.task.writer, row, resolved)
