"""What a model family must state: its rules for frames, sizes, tokens and times. Pure, no files, no engine.

A family answers four questions about a clip: which frames (`choose_frames`), how large
and how many tokens (`layout`), what the model reads as their times (`time_texts`), and
in which form an engine must be told (`engine_metadata`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from vidpipe.models.clock import FrameClock
from vidpipe.recipe.schema import Sampling


@dataclass(frozen=True)
class VideoLayout:
    """How a video lies before the model."""

    size_wh: tuple[int, int]
    """Width and height of every frame after the resize rule, in pixels."""
    grid_thw: tuple[int, int, int]
    """Patches along time, height and width, before merging."""
    vision_tokens: int
    """Tokens that the language model gets for the frames, before pruning."""


class Family(Protocol):
    """The rules of one model family."""

    name: str
    model_types: frozenset[str]
    """`model_type` words in a checkpoint's config.json that mean this family."""

    def complete(self, sampling: Sampling, processor: Mapping[str, Any]) -> Sampling:
        """`sampling` with the defaults of the family and of the checkpoint's video processor filled in.

        Args:
            sampling: As the row has it; keys left out are None.
            processor: The checkpoint's `video_preprocessor_config.json`.
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
            MediaError: `aspect_ratio`, where the family refuses a shape.
        """

    def time_texts(self, times_s: Sequence[float]) -> list[str]:
        """What the model reads as the times of frames shown at `times_s`."""

    def engine_metadata(self, clock: FrameClock) -> dict[str, Any]:
        """Metadata that vLLM wants beside the frames so that its prompt says the times of `clock`."""

    def processor_kwargs(self, sampling: Sampling, processor: Mapping[str, Any]) -> dict[str, Any]:
        """Keyword arguments of the Hugging Face processor that make it resize as `layout` says."""
