"""How evenly workers of different speeds share a run: vidpipe's own plan and order of claims, with simulated clocks.

    python tests/perf/cluster_simulation.py

10,000 clips of Pareto-distributed cost on 64 workers of speeds 0.5 to 1, 20 seeds. A free worker takes the shard that
`vidpipe.plan.choice` names, as `vidpipe.job.feed.ShardFeed` does, and does one clip after another; what it knows of
others is what they wrote when they took their shards. Ideal is the larger of total cost / total speed and costliest
clip / fastest worker. Batching in an engine is left out.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from vidpipe.plan.choice import Pace, choose
from vidpipe.plan.cost import share_out

CLIPS, WORKERS, SEEDS, COST = 10_000, 64, 20, 1_000_000


Rule = Callable[[Sequence[int], float, Pace, Sequence[Pace]], int]


@dataclass(frozen=True)
class Trouble:
    """What is not ideal about a cluster."""

    starts: float = 0.0
    """Workers begin at any time up to this share of the ideal makespan."""
    error: float = 0.0
    """Measured speeds are off by a factor, exp of a normal deviate of this width, anew each time."""
    deaths: int = 0
    """Of the fastest workers, those that vanish after a tenth of the ideal makespan; a lease is as long again."""


def makespan(
    costs: Sequence[int], speeds: Sequence[float], trouble: Trouble, rule: Rule, ideal: float, seed: int
) -> float:
    """When the last shard is done."""
    random = np.random.default_rng(1000 + seed)
    shards = [sum(costs[place] for place in shard) for shard in share_out(costs)]
    mean = sum(shards) / len(shards)
    free = list(shards)  # falling
    events = [(begin, worker) for worker, begin in enumerate(random.uniform(0, trouble.starts * ideal, len(speeds)))]
    heapq.heapify(events)
    doomed = set(np.argsort(speeds)[len(speeds) - trouble.deaths :].tolist())
    dies, lease_out = 0.1 * ideal, 0.2 * ideal
    paces: dict[int, Pace] = {}
    idle: list[int] = []
    done, busy = [0.0] * len(speeds), [0.0] * len(speeds)
    end = 0.0
    while events:
        now, worker = heapq.heappop(events)
        before = paces.pop(worker, None)
        if worker in doomed and now >= lease_out and before is not None:
            insort(free, before.held, key=lambda cost: -cost)
            events += [(now, waiting) for waiting in idle]
            heapq.heapify(events)
            idle.clear()
            continue
        if not free:
            idle.append(worker)
            continue
        speed = done[worker] / busy[worker] * np.exp(trouble.error * random.standard_normal()) if done[worker] else None
        cost = free.pop(rule(free, mean, Pace(speed, 0), list(paces.values())))
        paces[worker] = Pace(speed, cost)
        lasts = cost / speeds[worker]
        if worker in doomed and now + lasts > dies:  # others believe in it until its lease has run out
            heapq.heappush(events, (max(now, lease_out), worker))
            continue
        done[worker] += cost
        busy[worker] += lasts
        end = max(end, now + lasts)
        heapq.heappush(events, (now + lasts, worker))
    assert not free
    return end


def costliest_first(costs: Sequence[int], mean: float, own: Pace, others: Sequence[Pace]) -> int:
    """Whoever comes first: what `choose` is compared with."""
    return 0


def ratios(shape: float, trouble: Trouble = Trouble(), rule: Rule = choose) -> list[float]:
    """For each seed: makespan over ideal."""
    found = []
    for seed in range(SEEDS):
        random = np.random.default_rng(seed)
        costs = (COST * (1 + random.pareto(shape, CLIPS))).astype(int).tolist()
        speeds = random.uniform(0.5, 1, WORKERS).tolist()
        ideal = max(sum(costs) / sum(speeds), max(costs) / max(speeds))
        found.append(makespan(costs, speeds, trouble, rule, ideal, seed) / ideal)
    return found


TROUBLES = {
    "none": Trouble(),
    "begin within 5 % of the time": Trouble(starts=0.05),
    "speeds measured 10 % wrong": Trouble(error=0.1),
    "speeds measured 30 % wrong": Trouble(error=0.3),
    "the fastest dies": Trouble(deaths=1),
    "all of these": Trouble(starts=0.05, error=0.3, deaths=1),
}

if __name__ == "__main__":
    for shape in (2.5, 1.5):
        for name, trouble in TROUBLES.items():
            print(f"Pareto {shape}, trouble: {name}; makespan over ideal:", end="")
            for said, rule in (("", choose), ("without regard to speed ", costliest_first)):
                found = np.array(ratios(shape, trouble, rule))
                print(f" {said}mean {found.mean():.3f}, worst {found.max():.3f}", end=";" if rule is choose else "\n")
