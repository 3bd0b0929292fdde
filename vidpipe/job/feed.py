"""Work for this process: shards claimed one by one as they are needed, clip by clip."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vidpipe.job import outcome
from vidpipe.job.pace import Pacer
from vidpipe.job.prospect import Prospect
from vidpipe.job.settings import ResolvedRow, Resolver
from vidpipe.plan.clips import Clip, PlannedRow
from vidpipe.record.disk import server_now_s
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
    ) -> None:
        self._prospect, self._run_dir, self._shards = prospect, run_dir, shards
        self._run, self._resolver, self._on_row = run, resolver, on_row
        self._record = prospect.recipe.record
        self._by_id = {row.id: row for row in prospect.manifest.rows}
        self._open = wanted - run_dir.done_shards()
        self._held: dict[int, ShardWriter] = {}
        self._heart = Heart(self._record.lease_s)
        self._pacer = Pacer(run_dir, shards, self._record.lease_s)
        self._tasks: Iterator[Task] = iter(())
        self._look_at, self._look_again_s = 0.0, LOOK_AGAIN_S

    def engine_started(self) -> None:
        """To be called once: what is recorded from now on tells how fast this process is."""
        self._pacer.engine_started()

    def next_task(self) -> Task | None:
        """The next clip to answer; None when there is nothing to take just now."""
        while True:
            task = next(self._tasks, None)
            if task is None:
                if not self._claim():
                    return None
            elif self.holds(task.writer):
                return task

    @property
    def finished(self) -> bool:
        """Whether every shard is done, by whomever, as of the last look for a free one."""
        return not self._open

    def record(self, writer: ShardWriter, row: OutputRow, resolved: ResolvedRow | None) -> None:
        """Record a finished row; publish its shard when it was the last."""
        if not self.holds(writer):
            return  # its shard was lost to another process while the engine was at it
        writer.append(row, resolved.values if resolved else {})
        self._on_row(row)
        self._pacer.row_done(writer.lease.shard)
        self._publish_if_whole(writer)

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
            lease = take(self._run_dir, shard, attempt, now_s, self._record.lease_s, speed)
            if lease is not None:
                self._heart.keep(lease)
                columns = self._prospect.manifest.columns
                writer = ShardWriter(lease, self._shards.ids[shard], columns, self._run, self._record.sync_s)
                self._held[shard] = writer
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
            shard for shard in watched if not is_alive(self._run_dir, shard, others[shard], now_s, self._record.lease_s)
        }

    def _begin(self, writer: ShardWriter) -> None:
        plan = self._prospect.plan([self._by_id[row_id] for row_id in writer.missing_in_order])
        limit = self._prospect.recipe.retry.attempts
        tasks: list[Task] = []
        for clip in plan.clips:
            sound = tuple(p for p in clip.rows if not writer.deaths[p.row.id])
            if sound:
                tasks.append(Task(Clip(sound), writer, alone=False))
            suspects = tuple(p for p in clip.rows if 0 < writer.deaths[p.row.id] < limit)
            if suspects:
                tasks.append(Task(Clip(suspects), writer, alone=True))
            for planned in clip.rows:
                if writer.deaths[planned.row.id] >= limit:
                    self._give_up(writer, planned)
        for bad in plan.bad_rows:
            self.record(writer, outcome.not_run(bad), None)
        self._tasks = iter(tasks)
        self._publish_if_whole(writer)

    def _give_up(self, writer: ShardWriter, planned: PlannedRow) -> None:
        resolved = self._resolver.resolve(planned.settings)
        self.record(writer, outcome.poisoned(planned, resolved, writer.deaths[planned.row.id]), resolved)

    def _publish_if_whole(self, writer: ShardWriter) -> None:
        if writer.whole and self.holds(writer):
            del self._held[writer.lease.shard]
            writer.publish()
            self._open.discard(writer.lease.shard)  # whoever was first with it
            self._heart.drop(writer.lease)
