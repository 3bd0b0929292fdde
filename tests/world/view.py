"""What a model gets to see of a scene: the frames that vidpipe's own rule chooses, in pairs, with their time texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from tests.world.scene import Scene, Thing
from vidpipe.models.qwen3_vl import Qwen3VL, pair_times
from vidpipe.recipe.schema import Sampling

FAMILY = Qwen3VL()
PROCESSOR: Mapping[str, Any] = {"size": {"shortest_edge": 4_096, "longest_edge": 25_165_824}}


@lru_cache
def sampling(fps: float) -> Sampling:
    """The recipe's `sampling` section for the world: down to a single pair of frames."""
    return FAMILY.complete(Sampling(fps=fps, min_frames=2), PROCESSOR)


@dataclass(frozen=True)
class View:
    """A scene at the times of its sampled frames."""

    scene: Scene
    times_s: tuple[float, ...]
    """Of each frame; an odd last one stands there twice, as the processor pads it."""
    told: tuple[str, ...]
    """The number in each pair's time text."""

    @cached_property
    def seen(self) -> tuple[Thing, ...]:
        """Things that are in at least one frame."""
        return tuple(thing for thing in self.scene.things if any(map(thing.there, self.times_s)))

    def pairs_with(self, thing: Thing) -> list[int]:
        """Pairs with it in one frame at least."""
        shown = [thing.there(time_s) for time_s in self.times_s]
        return [pair for pair in range(len(self.told)) if shown[2 * pair] or shown[2 * pair + 1]]

    def whole_in(self, pair: int, thing: Thing) -> bool:
        """Whether it is in both frames of a pair."""
        return thing.there(self.times_s[2 * pair]) and thing.there(self.times_s[2 * pair + 1])

    @cached_property
    def lit_pairs(self) -> list[int]:
        """Pairs with the border lit in one frame at least."""
        lit = [self.scene.border_lit(time_s) for time_s in self.times_s]
        return [pair for pair in range(len(self.told)) if lit[2 * pair] or lit[2 * pair + 1]]


def look(scene: Scene, fps: float | None = None) -> View:
    """The view at a rate of `fps` frames a second, or at the scene's own."""
    indices = FAMILY.choose_frames(scene.frames, scene.fps, sampling(fps or scene.sampling_fps))
    return view_at(scene, [index / scene.fps for index in indices])


def view_at(scene: Scene, times_s: list[float]) -> View:
    """The view at these times."""
    told = tuple(f"{time_s:.1f}" for time_s in pair_times(times_s))
    padded = [*times_s, times_s[-1]] if len(times_s) % 2 else times_s
    return View(scene, tuple(padded), told)
