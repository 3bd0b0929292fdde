"""How evenly workers of different speeds share a run: vidpipe's own plan and order of claims, with simulated clocks.

    python tests/perf/cluster_simulation.py

10,000 clips of Pareto-distributed cost on 64 workers of speeds 0.5 to 1, 20 seeds. A free worker takes the first shard
that nobody has, as `vidpipe.job.feed.ShardFeed` does, and does one clip after another. Ideal is the larger of
total cost / total speed and costliest clip / fastest worker. Start-up and batching in an engine are left out.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from vidpipe.plan.cost import share_out

CLIPS, WORKERS, SEEDS, COST = 10_000, 64, 20, 1_000_000


def makespan(costs: Sequence[int], speeds: Sequence[float]) -> float:
    """When the last worker is done."""
    free = [(0.0, worker) for worker in range(len(speeds))]
    end = 0.0
    for shard in share_out(costs):
        now, worker = heapq.heappop(free)
        now += sum(costs[place] for place in shard) / speeds[worker]
        end = max(end, now)
        heapq.heappush(free, (now, worker))
    return end


def ratios(shape: float, seeds: int = SEEDS) -> list[tuple[float, bool]]:
    """For each seed: makespan over ideal, and whether the costliest clip alone lasts longer on the slowest worker."""
    found = []
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        costs = (COST * (1 + random.pareto(shape, CLIPS))).astype(int).tolist()
        speeds = random.uniform(0.5, 1, WORKERS).tolist()
        shared = sum(costs) / sum(speeds)
        ideal = max(shared, max(costs) / max(speeds))
        found.append((makespan(costs, speeds) / ideal, max(costs) / min(speeds) > shared))
    return found


if __name__ == "__main__":
    for shape in (1.5, 2.5):
        found = ratios(shape)
        over = np.array([ratio for ratio, _ in found])
        by_one = np.array([alone for _, alone in found])
        print(f"Pareto {shape}: makespan over ideal, mean {over.mean():.3f}, worst {over.max():.3f}")
        for name, chosen in (("one clip may last longest", by_one), ("no clip does", ~by_one)):
            if chosen.any():
                print(f"  {name}: {chosen.sum()} seeds, mean {over[chosen].mean():.3f}, worst {over[chosen].max():.3f}")
