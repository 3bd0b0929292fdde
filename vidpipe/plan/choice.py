"""Which of the free shards a worker takes next. Pure.

The costliest first, which is list scheduling by longest processing time (Graham, SIAM Journal on
Applied Mathematics 17(2), 1969). That is all, unless a single clip makes a shard of many times the
usual cost: whoever takes that one may be left alone with it when all others are done, so it is left
to a fast worker. Speeds are what workers have measured, and nobody waits for anybody: a worker that
leaves a shard takes another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

OUTLASTING = 4
"""Times the mean cost of a shard; the first that `cost.cut` makes of usual clips has about twice the mean."""
SMALL_START = 0.75
"""Where in the list of free shards, costliest first, one stands that shows a worker's speed soon."""


@dataclass(frozen=True)
class Pace:
    """What is known of a worker."""

    cost_per_s: float | None
    """Its speed; None before it has finished anything."""
    held: int
    """Cost of the shards that it is at."""


def may_outlast(cost: int, mean: float) -> bool:
    """Whether a shard is so costly that it matters who takes it.

    Args:
        cost: The shard's.
        mean: Mean cost of the plan's shards.
    """
    return cost > OUTLASTING * mean


def choose(costs: Sequence[int], mean: float, own: Pace, others: Sequence[Pace]) -> int:
    """The place in `costs` of the shard that a worker should take.

    While its own speed, or that of most workers, is not known, a small usual one. Then each shard in turn
    is reckoned to the worker that would finish it first (Gonzalez, Ibarra and Sahni, SIAM Journal on Computing
    6(1), 1977: longest processing time on uniform processors), until one falls to this worker.

    Args:
        costs: Of the free shards, falling; at least one.
        mean: Mean cost of the plan's shards.
        own: Of the worker that asks.
        others: Of the workers that live.
    """
    if not may_outlast(costs[0], mean):
        return 0
    known = [(one.cost_per_s, one.held) for one in (own, *others) if one.cost_per_s is not None]
    if own.cost_per_s is None or 2 * len(known) < 1 + len(others):
        usual = next((place for place, cost in enumerate(costs) if not may_outlast(cost, mean)), len(costs) - 1)
        return usual + int(SMALL_START * (len(costs) - usual))
    speeds = np.array([speed for speed, _ in known])
    ready_s = np.array([held for _, held in known]) / speeds
    for place, cost in enumerate(costs):
        ends_s = ready_s + cost / speeds
        first = int(ends_s.argmin())
        if first == 0:
            return place
        ready_s[first] = ends_s[first]
    return len(costs) - 1
