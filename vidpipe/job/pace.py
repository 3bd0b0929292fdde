"""How fast this process and the others on a run are, so that clips of many times the usual cost go to fast ones."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from vidpipe.plan.choice import Pace, choose, may_outlast
from vidpipe.record.lease import live_holder
from vidpipe.record.run_dir import RunDir
from vidpipe.record.shards import Shards


class Pacer:
    """Measures this process, and chooses among free shards.

    Args:
        run_dir: The run.
        shards: Its stored plan.
        lease_s: Age of a heartbeat after which its process counts as gone.
    """

    def __init__(self, run_dir: RunDir, shards: Shards, lease_s: float) -> None:
        self._run_dir, self._shards, self._lease_s = run_dir, shards, lease_s
        self._mean = sum(shards.cost.values()) / max(1, len(shards.cost))
        self._began_s: float | None = None
        self._done = 0.0

    def engine_started(self) -> None:
        """The time counts from now on."""
        self._began_s = time.monotonic()

    def row_done(self, shard: int) -> None:
        """A row of a shard is finished; rows of one shard are reckoned to cost the same."""
        if self._began_s is not None:
            self._done += self._shards.cost[shard] / len(self._shards.ids[shard])

    @property
    def cost_per_s(self) -> float | None:
        """Cost of what this process has finished, a second since its engine started; None before the first row."""
        if self._began_s is None or not self._done:
            return None
        return self._done / (time.monotonic() - self._began_s)

    def costliest_first(self, free: Collection[int]) -> list[int]:
        """Shards in the order that `next_of` expects."""
        return sorted(free, key=lambda shard: (-self._shards.cost[shard], shard))

    def next_of(self, free: Sequence[int], own: Collection[int], held: Mapping[int, int], now_s: float) -> int:
        """The place in `free` of the shard to take.

        Args:
            free: Shards, the costliest first; at least one.
            own: Those that this process is at.
            held: Those that others have taken, and the latest attempt at each.
            now_s: `server_now_s` of the claims' folder.
        """
        costs = [self._shards.cost[shard] for shard in free]
        if not may_outlast(costs[0], self._mean):
            return 0  # nearly always, and without a look at what others say
        pace = Pace(self.cost_per_s, sum(self._shards.cost[shard] for shard in own))
        return choose(costs, self._mean, pace, self._others(held, now_s))

    def _others(self, held: Mapping[int, int], now_s: float) -> list[Pace]:
        said: dict[tuple[Any, ...], tuple[str, float | None]] = {}
        costs: dict[tuple[Any, ...], int] = {}
        for shard, attempt in held.items():
            holder = live_holder(self._run_dir, shard, attempt, now_s, self._lease_s)
            if not holder:
                continue
            process = tuple(holder.get(key) for key in ("host", "pid", "began"))
            said[process] = max(said.get(process, ("", None)), (holder["taken"], holder.get("cost_per_s")), key=_when)
            costs[process] = costs.get(process, 0) + self._shards.cost[shard]
        return [Pace(said[process][1], cost) for process, cost in costs.items()]


def _when(said: tuple[str, float | None]) -> str:
    return said[0]
