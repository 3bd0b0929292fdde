"""The loop of a run: clips come in prepared, requests go to the engine, replies come out and are recorded.

How many requests, and how many bytes of media, are in flight is bounded, so memory does
not grow with the run. The loop knows when the engine has nothing to do, and why.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from vidpipe.engine.interface import Engine, EngineInput, Refusal, Reply
from vidpipe.errors import MediaError, RowError
from vidpipe.job import outcome
from vidpipe.job.budget import ByteBudget, Place
from vidpipe.job.decoded import Decoded
from vidpipe.job.feed import ShardFeed, Task
from vidpipe.job.feed_report import FeedMeter
from vidpipe.job.idle import IdleClock
from vidpipe.job.kv_room import KvRoom
from vidpipe.job.settings import ResolvedRow, Resolver
from vidpipe.job.unanswerable import record_unreadable
from vidpipe.job.watchdog import Watchdog
from vidpipe.job.work import ClipInputs
from vidpipe.plan.clips import PlannedRow
from vidpipe.record.row import OutputRow

IDLE_WAIT_S = 0.05
STARVED_S = 0.2
"""A wait of the engine for the workers that is worth one more of them."""
GRACE_S = 20.0
"""After a request to stop: time for what is in the engine to finish."""


@dataclass
class _OpenClip:
    """A clip some of whose rows have not come back."""

    task: Task
    inputs: ClipInputs
    place: Place
    rows: int

    def tokens_of(self, engine_input: EngineInput) -> tuple[int, int]:
        """Of a row: its own tokens and its answer's, and those that the rows of this clip share."""
        shared = min(self.inputs.seen.vision_tokens, engine_input.tokens)
        return engine_input.tokens - shared + engine_input.generation.max_tokens, shared


@dataclass(frozen=True)
class _Waiting:
    """A row between its clip's arrival and its reply; its input goes when the engine has it."""

    planned: PlannedRow
    clip: _OpenClip
    engine_input: EngineInput | RowError | None
    tokens: tuple[int, int] = (0, 0)
    """In the engine: see `_OpenClip.tokens_of`."""


class Loop:
    """Answers the feed's clips with an engine.

    Args:
        engine: A started engine.
        feed: Where clips come from and rows go to.
        decoded: The same clips, prepared.
        budget: Gets the bytes of a clip back when its last row is done.
        resolver: Makes the settings that rows record.
        depth: Rows in the engine at once.
        idle: Is told when the engine has work and when it has none.
        watchdog: Watches the calls into the engine.
        meter: Counts clips and rows.
    """

    def __init__(
        self,
        engine: Engine,
        feed: ShardFeed,
        decoded: Decoded,
        budget: ByteBudget,
        resolver: Resolver,
        depth: int,
        idle: IdleClock,
        watchdog: Watchdog,
        meter: FeedMeter,
    ) -> None:
        self._engine, self._feed, self._decoded, self._budget = engine, feed, decoded, budget
        self._resolver, self._depth, self._idle = resolver, depth, idle
        self._watchdog, self._meter = watchdog, meter
        self._kv_room = KvRoom(engine.kv_tokens)
        self._ready: deque[_Waiting] = deque()
        self._in_flight: dict[str, _Waiting] = {}
        self._steps = engine.steps

    @property
    def rows_ready(self) -> int:
        """Prepared rows that the engine has not taken."""
        return len(self._ready)

    @property
    def rows_in_engine(self) -> int:
        """Rows that it is at."""
        return len(self._in_flight)

    def run(self, stop: Callable[[], bool]) -> bool:
        """Answer until every shard is done; False when `stop` said so before.

        With nothing left to take, it waits for the processes that hold the other shards,
        and takes over from those that die.

        Raises:
            EngineError: `engine_dead` or `engine_timeout`.
        """
        self._feed.engine_started()
        while not stop():
            self._fill(stop)
            self._decoded.top_up()  # after that, or workers whose clips were taken would wait for the engine's step
            answered = self._poll()
            if not answered and not self._in_flight and not self._ready:
                if self._decoded:
                    self._decoded.wait(IDLE_WAIT_S)
                elif self._feed.finished:
                    return True
                else:
                    self._idle.nothing_to_take(time.monotonic())
                    time.sleep(IDLE_WAIT_S)
        deadline = time.monotonic() + GRACE_S
        while self._in_flight and time.monotonic() < deadline:
            self._poll()
        return False

    def _poll(self) -> bool:
        replies = self._watchdog.call(self._engine.poll)
        for reply in replies:
            self._finish(reply)
        if self._engine.steps != self._steps or not self._in_flight:
            self._steps = self._engine.steps
            self._watchdog.progress()
        if not self._in_flight:
            self._idle.emptied(time.monotonic())
        self._feed.tick()
        return bool(replies)

    def _fill(self, stop: Callable[[], bool]) -> None:
        """Give the engine all that has come through, as far as it has room: at one clip a step, workers wait for it.

        Of clips that this process prepares one a step all the same: meanwhile the engine may make none.
        """
        prepared = False
        while not stop():
            if not self._ready:
                if prepared or not self._take():
                    return
                prepared = self._decoded.prepares_here
            elif self._has_room_for(self._ready[0]):
                self._submit(self._ready.popleft())
            else:
                return

    def _take(self) -> bool:
        """Make the rows of a clip that has come through ready, or record why they cannot run; False without one."""
        arrival = self._decoded.next_finished()
        if arrival is None:
            return False
        task, result = arrival.task, arrival.result
        if isinstance(result, MediaError):
            self._meter.rows += record_unreadable(self._feed, self._resolver, task, result)
            return True
        self._meter.clip(result.seen, result.prepare_s, result.transfer_s)
        clip = _OpenClip(task, result, arrival.place, len(result.inputs))
        for planned, engine_input in zip(task.clip.rows, result.inputs, strict=True):
            self._ready.append(_Waiting(planned, clip, engine_input))
        return True

    def _has_room_for(self, waiting: _Waiting) -> bool:
        if not self._in_flight:
            return True
        if waiting.clip.task.alone or any(entry.clip.task.alone for entry in self._in_flight.values()):
            return False
        if isinstance(waiting.engine_input, EngineInput):
            tokens = waiting.clip.tokens_of(waiting.engine_input)
            if not self._kv_room.fits(id(waiting.clip), *tokens):
                return False
        return len(self._in_flight) < self._depth

    def _submit(self, waiting: _Waiting) -> None:
        planned, clip = waiting.planned, waiting.clip
        if not self._feed.holds(clip.task.writer):
            self._close_row(clip)
            return
        if isinstance(waiting.engine_input, RowError):
            self._refuse(waiting, waiting.engine_input)
            return
        clip.task.writer.note_started(planned.row.id)
        assert waiting.engine_input is not None
        tokens = clip.tokens_of(waiting.engine_input)
        self._watchdog.call(self._engine.submit, waiting.engine_input)
        self._kv_room.enter(id(clip), *tokens)
        times = {"prepare_s": clip.inputs.prepare_s, "transfer_s": clip.inputs.transfer_s}
        if self._idle.filled(time.monotonic(), **times) >= STARVED_S:
            self._decoded.add_worker()
        self._in_flight[planned.row.id] = _Waiting(planned, clip, None, tokens)

    def _refuse(self, waiting: _Waiting, error: RowError) -> None:
        planned, clip = waiting.planned, waiting.clip
        resolved = self._resolver.resolve(planned.settings)
        self._settle(clip.task, planned, outcome.refused(planned, clip.inputs.seen, resolved, error), resolved)
        self._close_row(clip)

    def _finish(self, reply: Reply | Refusal) -> None:
        entry = self._in_flight.pop(reply.id, None)
        if entry is None:
            return  # a second reply to one request: the first one counts
        self._kv_room.leave(id(entry.clip), *entry.tokens)
        if isinstance(reply, Refusal):
            self._refuse(entry, reply.error)
            return
        clip, writer = entry.clip, entry.clip.task.writer
        resolved = self._resolver.resolve(entry.planned.settings)
        attempt = 1 + writer.deaths[reply.id]
        row = outcome.answered(entry.planned, clip.inputs.seen, resolved, reply, clip.inputs.prepare_s, attempt)
        self._settle(clip.task, entry.planned, row, resolved)
        self._close_row(clip)

    def _settle(self, task: Task, planned: PlannedRow, row: OutputRow, resolved: ResolvedRow) -> None:
        self._meter.rows += self._feed.settle(task, planned, row, resolved)

    def _close_row(self, clip: _OpenClip) -> None:
        clip.rows -= 1
        if not clip.rows:
            self._budget.leave(clip.place)
