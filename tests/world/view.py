"""What a model gets to see of a scene: the frames that vidpipe's own rule chooses, in steps, with their time texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from tests.world.scene import Scene, Thing
from vidpipe.models.family import Family
from vidpipe.models.llava_onevision2 import LlavaOnevision2
from vidpipe.models.llava_onevision2_sampling import MIN_FRAMES
from vidpipe.models.qwen3_vl import Qwen3VL
from vidpipe.recipe.schema import Sampling


@dataclass(frozen=True, eq=False)
class Eye:
    """How the world's model of a family looks at a scene."""

    family: Family
    bounds: Mapping[str, int]
    """Pixels of a frame or a clip in its processor's settings, as `shortest_edge` and `longest_edge`."""
    frames_a_step: int
    """Frames that one time text stands for and one grid of vision tokens shows."""
    least_frames: int
    """Frames that are sampled at the least; two of a scene that has no more."""
    mrope: bool
    """Whether its positions have an axis each for time, height and width."""
    asked: Mapping[str, Any] = field(default_factory=dict)
    """What a row's sampling says besides the rate."""

    @property
    def processor(self) -> Mapping[str, Any]:
        """The part of the processor's settings that decides sizes."""
        return {"size": dict(self.bounds)}

    @lru_cache  # noqa: B019 - there are two eyes
    def sampling(self, fps: float) -> Sampling:
        """The recipe's `sampling` section for the world."""
        return self.family.complete(Sampling(fps=fps, **self.asked), self.processor)

    def told(self, times_s: list[float], fps: float) -> tuple[str, ...]:
        """The number in each step's time text."""
        return tuple(text[1:].split()[0] for text in self.family.time_texts(times_s, self.sampling(fps)))


QWEN3_VL = Eye(Qwen3VL(), {"shortest_edge": 4_096, "longest_edge": 25_165_824}, 2, 2, True, {"min_frames": 2})
"""Pairs of frames, down to a single one; pictures as they are."""
LLAVA_ONEVISION2 = Eye(LlavaOnevision2(), {"shortest_edge": 3_136, "longest_edge": 19_600}, 1, MIN_FRAMES, False)
"""Frames one by one, each of at most 25 tokens."""
EYES = {eye.family.name: eye for eye in (QWEN3_VL, LLAVA_ONEVISION2)}


@dataclass(frozen=True)
class View:
    """A scene at the times of its sampled frames."""

    scene: Scene
    times_s: tuple[float, ...]
    """Of each frame; an odd last one of a pair stands there twice, as the processor pads it."""
    told: tuple[str, ...]
    """The number in each step's time text."""

    def _frames(self, step: int) -> tuple[float, ...]:
        """Times of a step's frames in seconds."""
        each = len(self.times_s) // len(self.told)
        return self.times_s[step * each : (step + 1) * each]

    @cached_property
    def seen(self) -> tuple[Thing, ...]:
        """Things that are in at least one frame."""
        return tuple(thing for thing in self.scene.things if any(map(thing.there, self.times_s)))

    def steps_with(self, thing: Thing) -> list[int]:
        """Steps with it in one frame at least."""
        return [step for step in range(len(self.told)) if any(map(thing.there, self._frames(step)))]

    def whole_in(self, step: int, thing: Thing) -> bool:
        """Whether it is in every frame of a step."""
        return all(map(thing.there, self._frames(step)))

    @cached_property
    def lit_steps(self) -> list[int]:
        """Steps with the border lit in one frame at least."""
        return [step for step in range(len(self.told)) if any(map(self.scene.border_lit, self._frames(step)))]


def look(scene: Scene, eye: Eye = QWEN3_VL, fps: float | None = None) -> View:
    """The view at a rate of `fps` frames a second, or at the scene's own."""
    fps = fps or scene.sampling_fps
    indices = eye.family.choose_frames(scene.frames, scene.fps, eye.sampling(fps))
    times_s = [index / scene.fps for index in indices]
    missing = -len(times_s) % eye.frames_a_step
    return View(scene, (*times_s, *times_s[-1:] * missing), eye.told(times_s, fps))
