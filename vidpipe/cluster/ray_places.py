"""How many actors of each kind a run asks Ray for, from the recipe and what the cluster has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vidpipe.engine.devices import computes_on_gpu, devices_needed
from vidpipe.job.decoders import MOST_AT_FIRST
from vidpipe.recipe.schema import Recipe

CORES_AN_ENGINE = 2
"""Beside its GPUs: its own, and that of its first decoder (see `ray_pool`). Further decoders take one each."""


@dataclass(frozen=True)
class Places:
    """What there is, and how it is shared out."""

    engines: int
    gpus_an_engine: int
    cores: int
    """Of the cluster now; one that grows on demand may have none yet."""
    gpus: Sequence[int]
    """Of each node."""
    workers: int | None = None
    """The recipe's `feed.workers`."""

    @classmethod
    def on_cluster(cls, recipe: Recipe, engines: int) -> Places:
        """For the connected cluster."""
        import ray

        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        cores, gpus = sum(int(node.get("CPU", 0)) for node in nodes), [int(node.get("GPU", 0)) for node in nodes]
        return cls(engines, gpus_an_engine(recipe), cores, gpus, recipe.feed.workers)

    def decoders_of(self, engine: int) -> tuple[int, int]:
        """Decoders of one engine at first, and at most: its share of `feed.workers`, or of the cluster's cores.

        Left out, it begins with half of its share, and an engine that has to wait gets one more each time.
        """
        if self.workers is not None:
            share = max(1, self.workers // self.engines + (engine < self.workers % self.engines))
            return share, share
        most = max(1, (self.cores - CORES_AN_ENGINE * self.engines) // self.engines + 1)
        return min(max(1, most // 2), MOST_AT_FIRST), most

    @property
    def engines_a_node(self) -> int:
        """The most engines that may share a node, and its memory."""
        if not self.gpus_an_engine:
            return self.engines
        return max(1, min(self.engines, max(self.gpus, default=0) // self.gpus_an_engine))

    def too_few(self) -> str | None:
        """What to tell the user if not all find a place now."""
        gpus = self.engines * self.gpus_an_engine
        cores = self.engines * CORES_AN_ENGINE
        if self.cores >= cores and sum(self.gpus) >= gpus:
            return None
        return (
            f"Ray has {self.cores} cores and {sum(self.gpus)} GPUs; {self.engines} engines (engine.data_parallel) with "
            f"a decoder each want {cores} and {gpus}. Those without a place wait for further nodes"
        )


def gpus_an_engine(recipe: Recipe) -> int:
    """GPUs that one engine of a run takes; none where it computes on the CPU."""
    if not computes_on_gpu(recipe.engine):
        return 0
    return devices_needed(recipe.engine.model_copy(update={"data_parallel": 1}))
