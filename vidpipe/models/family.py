"""What a model family must state: its rules for frames, sizes, tokens and times. Pure, no files, no engine.

A family answers for a clip: which frames (`choose_frames`), how large and how many
tokens (`layout`), what the model reads as their times (`time_texts`) and where that
stands in the prompt (`prompt`), and in which form an engine must be told all this
(`engine_metadata`, `processor_kwargs`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

from vidpipe.errors import CapabilityError
from vidpipe.models.clock import FrameClock
from vidpipe.models.prompt import Span
from vidpipe.recipe.schema import Sampling

OPTIONS = ("fps", "num_frames", "min_frames", "max_frames", "min_pixels", "max_pixels")
"""Keys of `sampling` that a rule may or may not have."""


@dataclass(frozen=True)
class VideoLayout:
    """How a video lies before the model."""

    size_wh: tuple[int, int]
    """Width and height of every frame after the resize rule, in pixels."""
    grid_thw: tuple[int, int, int]
    """Patches along time, height and width, before merging."""
    vision_tokens: int
    """Tokens that the language model gets for the frames, before pruning."""
    merge: int = 2
    """Patches along each side that become one token."""

    @property
    def tokens_per_step(self) -> int:
        """Tokens of one temporal patch."""
        return self.grid_thw[1] * self.grid_thw[2] // self.merge**2


@dataclass(frozen=True)
class ImageLayout:
    """How a still image lies before the model."""

    size_wh: tuple[int, int]
    """Width and height after the resize rule, in pixels."""
    vision_tokens: int


@dataclass(frozen=True)
class ImageRules:
    """What a family states of still images."""

    slot_word: str
    """Control word that the chat template writes where an image belongs."""
    vision_word: str
    """Control word that each of its vision tokens is in the finished prompt."""
    layout: Callable[[int, int, Mapping[str, Any]], ImageLayout]
    """Width and height in pixels, and the settings of the checkpoint's image processor, to size and tokens.

    Raises:
        MediaError: `aspect_ratio`, where the family refuses a shape.
    """
    beside_videos: bool = True
    """Whether a row may have both; not where one processor makes both one size."""


@dataclass(frozen=True)
class Abilities:
    """What a family can do in its engine, as written down; `engine.abilities` holds it against the installed engine."""

    engine: Literal["vllm", "sglang"]
    architecture: str
    """The word in a checkpoint's `architectures` by which the engine knows the model class."""
    pruning: tuple[str, ...] = ()
    """Pruning methods; where empty vLLM ignores the switch without a word."""
    encoder_graphs: tuple[str, ...] = ()
    """Modalities whose encoder runs as CUDA graphs, of `image` and `video`."""
    encoder_data_parallel: bool = False
    needs_remote_code: bool = False
    """Whether the checkpoint's own Python code must be allowed."""
    images: ImageRules | None = None
    """How still images are shown; None: a row has none. Tested with the engine, like the two that follow."""
    codec_video: bool = False
    """Whether the checkpoint's code makes canvases of a video's codec stream (`sampling.video_backend: codec`)."""
    several_videos: bool = False
    """Whether a row may show more than one video."""
    text_between_frames: bool = False
    """Whether text may stand between the frames of a video, as subtitles do."""
    engine_args: Mapping[str, Any] = field(default_factory=dict)
    """Arguments without which the engine does not show the model what the rules say."""
    vision_beside_prompt: bool = False
    """Whether vision tokens lie in slots of the KV cache beside the prompt's, and take of the context like them."""
    other_engines: tuple[Literal["vllm", "sglang"], ...] = ()
    """Engines that run it too; pruning, graphs and arguments are those of `engine`."""


class Family(Protocol):
    """The rules of one model family."""

    name: ClassVar[str]
    model_types: ClassVar[frozenset[str]]
    """`model_type` words in a checkpoint's config.json that mean this family."""
    rules: ClassVar[Mapping[str, frozenset[str]]]
    """Index rule -> the `OPTIONS` that it has; the first rule is the default."""
    abilities: ClassVar[Abilities]
    published: ClassVar[Mapping[str, Any]]
    """Processor settings of the published checkpoints, for use without one."""
    frames_are_images: ClassVar[bool]
    """Whether frames go through the checkpoint's image processor, whose settings then count."""
    frames_multiple: ClassVar[int]
    """The model takes only whole multiples of so many frames; the last frame is repeated to get there."""
    least_frames: ClassVar[int]
    """The model takes no fewer frames; the last frame is repeated to get there."""
    times_in: ClassVar[Literal["prompt", "pixels"]]
    """Where the model reads times: as text in the prompt, or drawn on the frames."""

    slot_word: ClassVar[str]
    """Control word that the chat template writes where a video belongs."""
    vision_word: ClassVar[str]
    """Control word that each vision token is in the finished prompt."""

    def complete(self, sampling: Sampling, processor: Mapping[str, Any]) -> Sampling:
        """`sampling` with the defaults of the family and of the checkpoint's video processor filled in.

        Args:
            sampling: As the row has it; keys left out are None.
            processor: The settings of the checkpoint's processor.

        Raises:
            CapabilityError: the family has no such rule, or the rule no such option.
        """

    def choose_frames(self, frames: int, fps: float, sampling: Sampling) -> list[int]:
        """Indices, ascending, from 0 to `frames` - 1, of the frames to show; at least what the model needs.

        Args:
            frames: Frames that the clip has, at least 1.
            fps: Its average rate; 0 if unknown.
            sampling: A complete sampling.
        """

    def layout(
        self, frames: int, width: int, height: int, sampling: Sampling, processor: Mapping[str, Any]
    ) -> VideoLayout:
        """Size and tokens of `frames` frames of `width` x `height` pixels.

        Raises:
            MediaError: `aspect_ratio` or `too_large`, where the family refuses a shape.
        """

    def time_texts(self, times_s: Sequence[float], sampling: Sampling) -> list[str]:
        """What the model reads as the times of frames shown at `times_s`, in seconds."""

    def prompt(self, times_s: Sequence[float], layout: VideoLayout, sampling: Sampling) -> list[Span]:
        """What stands in the prompt for the video, from its first to its last token."""

    def engine_metadata(self, clock: FrameClock, sampling: Sampling) -> dict[str, Any]:
        """Metadata that the engine wants beside the frames so that the model reads the times of `clock`."""

    def processor_kwargs(self, sampling: Sampling, processor: Mapping[str, Any]) -> dict[str, Any]:
        """Keyword arguments of the Hugging Face processor that make it resize as `layout` says."""


@dataclass(frozen=True)
class Bounds:
    """The pixel bounds that a processor's settings state, in the family's unit."""

    min_pixels: int
    max_pixels: int


def bounds_of(processor: Mapping[str, Any], default: Bounds) -> Bounds:
    """Pixel bounds from `size.shortest_edge` and `size.longest_edge`, or from `min_pixels` and `max_pixels`."""
    size = processor.get("size") or {}
    low = size.get("shortest_edge", processor.get("min_pixels", default.min_pixels))
    high = size.get("longest_edge", processor.get("max_pixels", default.max_pixels))
    return Bounds(low, high)


def fill(family: Family, sampling: Sampling, defaults: Mapping[str, Any]) -> Sampling:
    """`sampling` under its rule, with `defaults` in place of what it leaves out.

    Args:
        family: The family whose rules hold.
        sampling: As the row has it.
        defaults: Values for the options; those that the rule lacks are left out.

    Raises:
        CapabilityError: the family has no such rule, or the rule no such option.
    """
    _refuse_codec(family, sampling)
    rule = rule_of(family, sampling)
    known = family.rules[rule]
    given = {key for key in OPTIONS if getattr(sampling, key) is not None}
    for key in sorted(given - known):
        others = sorted(name for name, options in family.rules.items() if key in options)
        way_out = f"Rules that have it: {', '.join(others)}." if others else "None of the family's rules has it."
        raise CapabilityError(
            f"sampling.{key}: the rule {rule!r} of {family.name} has no such option (it has "
            f"{', '.join(sorted(known))}). {way_out} Remove the key or set sampling.rule."
        )
    missing = {key: value for key, value in defaults.items() if key in known - given}
    return sampling.model_copy(update={"rule": rule, **missing})


def _refuse_codec(family: Family, sampling: Sampling) -> None:
    if sampling.video_backend == "codec" and not family.abilities.codec_video:
        raise CapabilityError(
            f"sampling.video_backend: {family.name} has no code that reads a video's codec stream; LLaVA-OneVision-2 "
            "has. Set sampling.video_backend: frames."
        )
    if sampling.video_backend == "frames" and sampling.canvases is not None:
        raise CapabilityError(
            f"sampling.canvases {sampling.canvases}: frames are shown, not canvases. Remove the key (in a row or an "
            "override: set it to null), or set sampling.video_backend: codec."
        )


def rule_of(family: Family, sampling: Sampling) -> str:
    """The index rule that holds: the one asked for, or the family's first.

    Raises:
        CapabilityError: the family has no such rule.
    """
    rule: str = sampling.rule or next(iter(family.rules))
    if rule not in family.rules:
        raise CapabilityError(
            f"sampling.rule: {family.name} has no rule {rule!r}. Its rules: {', '.join(family.rules)}."
        )
    return rule


def frames_to_add(family: Family, frames: int) -> int:
    """How often the last of `frames` frames must be repeated so that the model takes them."""
    wanted = max(frames, family.least_frames)
    return wanted + -wanted % family.frames_multiple - frames


def padded(family: Family, indices: list[int]) -> list[int]:
    """`indices` with the last one repeated until the model takes them; at least one must be there."""
    return indices + indices[-1:] * frames_to_add(family, len(indices))
