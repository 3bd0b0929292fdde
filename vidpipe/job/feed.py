"""Work for this process: shards claimed one by one as they are needed, clip by clip."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from vidpipe.errors import CapabilityError, RowError
from vidpipe.job import outcome
from vidpipe.job.again import asked_again, rule_for
from vidpipe.job.pace import Pacer
from vidpipe.job.prospect import Prospect
from vidpipe.job.settings import ResolvedRow, Resolver
from vidpipe.job.tolerance import FailureLimit
from vidpipe.manifest.row import BadRow, Fault
from vidpipe.plan.clips import Clip, PlannedRow, clip_key
from vidpipe.record.disk import read_mark, server_now_s
from vidpipe.record.lease import Heart, is_alive, take
from vidpipe.record.row import OutputRow
from vidpipe.record.run_dir import RunDir
from vidpipe.record.shard_writer import ShardWriter
from vidpipe.record.shards import Shards

LOOK_AGAIN_S, LOOK_AGAIN_AT_MOST_S = 0.5, 4.0
"""Between two looks for a free shard while there is none; doubled each time, for a thousand may be waiting."""
LEASES_A_LOOK = 8
"""Leases of others whose age is looked at before a shard is taken. A random few: a thousand processes that each looked
at a thousand would ask the file server for more than all the rest, and together they find a dead one as soon."""
COUNT_EVERY_S = 10.0
"""Between two looks at what others have finished; only with a tolerance that can end the run."""


@dataclass(frozen=True)
class Task:
    """A clip to answer, and where its rows go."""

    clip: Clip
    writer: ShardWriter
    alone: bool
    """Suspects: each of its rows must have the engine for itself."""


class ShardFeed:
    """Claims shards of a run and hands out their clips.

    Args:
        prospect: The recipe and what it names.
        run_dir: The run.
        shards: Its stored plan.
        wanted: Shards that this process may work on.
        run: Stored in every part's metadata.
        resolver: Makes the settings that rows record.
        on_row: Told of every recorded row.
        limit: Told what the shards have recorded, also those of other processes.
    """

    def __init__(
        self,
        prospect: Prospect,
        run_dir: RunDir,
        shards: Shards,
        wanted: set[int],
        run: Mapping[str, Any],
        resolver: Resolver,
        on_row: Callable[[OutputRow], None],
        limit: FailureLimit,
    ) -> None:
        self._prospect, self._run_dir, self._shards = prospect, run_dir, shards
        self._run, self._resolver, self._on_row = run, resolver, on_row
        self._keeping = prospect.recipe.record
        self._by_id = {row.id: row for row in prospect.manifest.rows}
        self._limit = limit
        self._open = wanted - run_dir.done_shards()
        self._held: dict[int, ShardWriter] = {}
        self._heart = Heart(self._keeping.lease_s)
        self._pacer = Pacer(run_dir, shards, self._keeping.lease_s)
        self._tasks: Iterator[Task] = iter(())
        self._again: dict[tuple[Any, ...], Task] = {}
        self._processor = prospect.checkpoint.processor(prospect.family)
        self._look_at, self._look_again_s = 0.0, LOOK_AGAIN_S
        self._count_at, self._counted = 0.0, set[int]()

    def engine_started(self) -> None:
        """To be called once: what is recorded from now on tells how fast this process is."""
        self._pacer.engine_started()

    def next_task(self) -> Task | None:
        """The next clip to answer; None when there is nothing to take just now."""
        while True:
            task = self._again.pop(next(iter(self._again))) if self._again else next(self._tasks, None)
            if task is None:
                if not self._claim():
                    return None
            elif self.holds(task.writer):
                return task

    @property
    def finished(self) -> bool:
        """Whether every shard is done, by whomever, as of the last look for a free one."""
        return not self._open

    def settle(self, task: Task, planned: PlannedRow, row: OutputRow, resolved: ResolvedRow) -> bool:
        """Record what became of a row; False if it is to be asked again, by the recipe's `retry.rules`."""
        writer = task.writer
        if not self.holds(writer):
            return False  # its shard was lost to another process while the engine was at it
        tries = writer.tries.get(row.id, [])
        row = replace(row, attempt=row.attempt + len(tries))
        if rule_for(self._prospect.recipe.retry.rules, [*tries, row]) is None:
            self._record(writer, row, resolved)
            return True
        writer.append_try(row, resolved.values)
        return not self._ask_again(writer, planned, alone=task.alone)

    def _record(self, writer: ShardWriter, row: OutputRow, resolved: ResolvedRow | None) -> None:
        self._on_row(writer.append(row, resolved.values if resolved else {}))
        self._pacer.row_done(writer.lease.shard)
        self._limit.see(writer.lease.shard, writer.statuses)
        self._publish_if_whole(writer)

    def _ask_again(self, writer: ShardWriter, planned: PlannedRow, *, alone: bool) -> bool:
        """Queue a row that has been tried; False if its own columns leave no way to, which is recorded then."""
        prospect, tries = self._prospect, writer.tries[planned.row.id]
        rule = rule_for(prospect.recipe.retry.rules, tries)
        try:
            if rule is None:  # another recipe's, before a restart
                raise RowError("bad_value", "retry.rules do not ask again any more")
            again = asked_again(planned, rule, len(tries), prospect.recipe, prospect.family, self._processor)
        except (RowError, CapabilityError) as error:
            fault = Fault("bad_value", f"it cannot be asked again: {error}")
            row = outcome.not_run(BadRow(planned.row.index, planned.row.id, fault, planned.row.values))
            self._record(writer, replace(row, attempt=tries[-1].attempt + 1), None)
            return False
        key = (writer.lease.shard, alone, clip_key(again))
        rows = self._again[key].clip.rows if key in self._again else ()
        self._again[key] = Task(Clip((*rows, again)), writer, alone)
        return True

    def holds(self, writer: ShardWriter) -> bool:
        """Whether the shard is still this process's to work on."""
        return self._held.get(writer.lease.shard) is writer

    def tick(self) -> None:
        """To be called often: brings rows to the disk, lets go of shards that others have taken."""
        for writer in list(self._held.values()):
            if writer.lease.lost:
                self._let_go(writer, died=False)
            else:
                writer.tick()
        if self._limit.counts and time.monotonic() >= self._count_at:
            self._count_at = time.monotonic() + COUNT_EVERY_S
            self._count_others()

    def _count_others(self) -> None:
        """Take note of shards that other processes have finished: their failures count, too."""
        for shard in self._run_dir.done_shards() - self._counted - self._held.keys():
            if (mark := read_mark(self._run_dir.done_file(shard))) is not None:
                self._counted.add(shard)
                self._limit.see(shard, mark["statuses"])

    def close(self, *, died: bool = False) -> None:
        """Give back what is held. Idempotent. `died`: see `Lease.give_back`."""
        self._heart.stop()
        for writer in list(self._held.values()):
            self._let_go(writer, died=died)

    def _let_go(self, writer: ShardWriter, *, died: bool) -> None:
        del self._held[writer.lease.shard]
        self._heart.drop(writer.lease)
        writer.give_back(died=died)

    def _claim(self) -> bool:
        """Take a free shard; False when there is none."""
        if time.monotonic() < self._look_at:
            return False
        self._open -= self._run_dir.done_shards()
        latest, now_s = self._run_dir.latest_attempts(), server_now_s(self._run_dir.claims)
        others = {shard: latest[shard] for shard in self._open - self._held.keys() if shard in latest}
        untaken = self._open - self._held.keys() - others.keys()
        free = self._pacer.costliest_first(untaken | self._let_go_of(others, now_s))
        while free:
            shard = free.pop(self._pacer.next_of(free, self._held.keys(), others, now_s))
            attempt, speed = latest.get(shard, 0), self._pacer.cost_per_s
            lease = take(self._run_dir, shard, attempt, now_s, self._keeping.lease_s, speed)
            if lease is not None:
                self._heart.keep(lease)
                columns = self._prospect.manifest.columns
                writer = ShardWriter(lease, self._shards.ids[shard], columns, self._run, self._keeping.sync_s)
                self._held[shard] = writer
                self._limit.see(shard, writer.statuses)
                self._begin(writer)
                self._look_again_s = LOOK_AGAIN_S
                return True
        self._look_at = time.monotonic() + self._look_again_s
        self._look_again_s = min(2 * self._look_again_s, LOOK_AGAIN_AT_MOST_S)
        return False

    def _let_go_of(self, others: Mapping[int, int], now_s: float) -> set[int]:
        """Which of some shards that others have taken are free again; `others` are shards and latest attempts."""
        watched = random.sample(sorted(others), min(LEASES_A_LOOK, len(others)))
        return {
            shard
            for shard in watched
            if not is_alive(self._run_dir, shard, others[shard], now_s, self._keeping.lease_s)
        }

    def _begin(self, writer: ShardWriter) -> None:
        plan = self._prospect.plan([self._by_id[row_id] for row_id in writer.missing_in_order])
        limit = self._prospect.recipe.retry.attempts
        tasks: list[Task] = []
        for clip in plan.clips:
            fresh = [p for p in clip.rows if p.row.id not in writer.tries]
            for planned in clip.rows:
                if planned.row.id in writer.tries and writer.deaths[planned.row.id] < limit:
                    self._ask_again(writer, planned, alone=writer.deaths[planned.row.id] > 0)
            sound = tuple(p for p in fresh if not writer.deaths[p.row.id])
            if sound:
                tasks.append(Task(Clip(sound), writer, alone=False))
            suspects = tuple(p for p in fresh if 0 < writer.deaths[p.row.id] < limit)
            if suspects:
                tasks.append(Task(Clip(suspects), writer, alone=True))
            for planned in clip.rows:
                if writer.deaths[planned.row.id] >= limit:
                    self._give_up(writer, planned)
        for bad in plan.bad_rows:
            self._record(writer, outcome.not_run(bad), None)
        self._tasks = iter(tasks)
        self._publish_if_whole(writer)

    def _give_up(self, writer: ShardWriter, planned: PlannedRow) -> None:
        resolved = self._resolver.resolve(planned.settings)
        row = outcome.poisoned(planned, resolved, writer.deaths[planned.row.id])
        self._record(writer, replace(row, attempt=row.attempt + len(writer.tries.get(row.id, []))), resolved)

    def _publish_if_whole(self, writer: ShardWriter) -> None:
        if writer.whole and self.holds(writer):
            del self._held[writer.lease.shard]
            writer.publish()
            self._open.discard(writer.lease.shard)  # whoever was first with it
            self._heart.drop(writer.lease)
