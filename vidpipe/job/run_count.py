"""How much of a run all its processes have recorded, without a look at what the others write.

Their shards count when a done mark is there: one listing of a folder, however many processes there are.
"""

from __future__ import annotations

from collections.abc import Collection

from vidpipe.job.tolerance import FailureLimit
from vidpipe.record.run_dir import RunDir
from vidpipe.record.shards import Shards


class RunCount:
    """Counts rows, and their predicted cost, of some shards.

    Args:
        run_dir: The run.
        shards: Its stored plan.
        wanted: Shards that count.
        limit: Knows what this process has recorded, and what was there before it.
    """

    def __init__(self, run_dir: RunDir, shards: Shards, wanted: Collection[int], limit: FailureLimit) -> None:
        self._run_dir, self._shards, self._limit = run_dir, shards, limit
        self._wanted = set(wanted)
        self._done: set[int] = set()
        self._done_rows = self._done_cost = 0
        cost = {shard: shards.cost[shard] for shard in self._wanted}
        # Plans of older versions have no costs; then rows are taken for equal.
        self._cost = cost if any(cost.values()) else {shard: len(shards.ids[shard]) for shard in self._wanted}
        self.plan_rows = shards.rows
        self.rows = sum(len(shards.ids[shard]) for shard in self._wanted)
        self.cost = sum(self._cost.values())

    def look(self) -> None:
        """See which shards are done by now, by whomever."""
        new = (self._run_dir.done_shards() & self._wanted) - self._done
        self._done_rows += sum(len(self._shards.ids[shard]) for shard in new)
        self._done_cost += sum(self._cost[shard] for shard in new)
        self._done |= new

    @property
    def recorded(self) -> tuple[int, float]:
        """Rows that are recorded, and the cost of these."""
        rows, cost = self._done_rows, float(self._done_cost)
        for shard in (self._limit.seen.keys() & self._wanted) - self._done:
            of_rows = len(self._shards.ids[shard])
            seen = min(of_rows, sum(self._limit.seen[shard].values()))
            rows += seen
            cost += self._cost[shard] * seen / of_rows
        return rows, cost
