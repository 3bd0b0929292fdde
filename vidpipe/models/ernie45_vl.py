"""ERNIE-4.5-VL: an even number of frames, joined in pairs behind the encoder, with their times drawn on the pixels.

Sources: vLLM `multimodal/video.py` (VideoBackend: the loader that ERNIE gets, since none is
registered for it), `model_executor/models/ernie45_vl.py` (`get_replacement_ernie45vl`);
transformers `models/ernie4_5_vl_moe` (`sample_frames`, `_convert_timestamp`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from vidpipe.errors import CapabilityError
from vidpipe.models.clock import FrameClock, vllm_metadata
from vidpipe.models.ernie45_vl_resize import hf_resize, vllm_resize
from vidpipe.models.family import Abilities, Bounds, VideoLayout, bounds_of, fill, padded, rule_of
from vidpipe.models.indices import spread_truncated, steps_float32
from vidpipe.models.prompt import Span
from vidpipe.recipe.schema import Sampling

PATCH, MERGE, TEMPORAL = 14, 2, 2
START, PLACEHOLDER, END = "<|VIDEO_START|>", "<|IMAGE_PLACEHOLDER|>", "<|VIDEO_END|>"
SLOT = "<|video@placeholder|>"
VLLM_MAX_FRAMES = 32
HF_MIN_FRAMES, HF_MAX_FRAMES = 16, 180
ASSUMED_FPS = 24.0
CLASS_BOUNDS = Bounds(299 * 28 * 28, 1196 * 28 * 28)


def uniform_indices(frames: int, fps: float, *, target_fps: float | None, max_frames: int | None) -> list[int]:
    """Frame indices of vLLM's uniform loader: the fewer of `max_frames` and of `target_fps` a second, at least 1.

    Args:
        frames: Frames of the clip, at least 1.
        fps: Its average rate; 0 if unknown, and then a target rate leaves one frame.
        target_fps: None for no limit.
        max_frames: None for no limit.
    """
    count = frames if max_frames is None else min(max_frames, frames)
    if target_fps is not None:
        duration_s = frames / fps if fps > 0 else 0.0
        count = min(count, math.floor(duration_s * target_fps))
    count = max(1, count)
    return list(range(count)) if count == frames else spread_truncated(frames, count)


def hf_indices(
    frames: int,
    fps: float,
    *,
    target_fps: float | None = None,
    num_frames: int | None = None,
    min_frames: int = HF_MIN_FRAMES,
    max_frames: int = HF_MAX_FRAMES,
) -> list[int]:
    """Frame indices of transformers' processor, which may end in one that equals `frames` and does not exist.

    Without a rate and a number it takes every frame, thinned to `max_frames`.

    Raises:
        ValueError: a number out of bounds or above the clip, a rate for a clip without one, or both.
    """
    if target_fps is not None and num_frames is not None:
        raise ValueError("a rate and a number of frames exclude each other")
    count: float
    if num_frames is not None:
        if not min_frames <= num_frames <= max_frames:
            raise ValueError(f"{num_frames} frames are not between {min_frames} and {max_frames}")
        count = num_frames
    else:
        if target_fps is not None and fps <= 0:
            raise ValueError("the clip's own rate is not known, so no other can be sampled from it")
        count = frames / fps * target_fps if target_fps is not None else frames
        count = min(max(count, min_frames), max_frames, frames)
    if count > frames:
        raise ValueError(f"{count} frames are more than the clip's {frames}")
    return steps_float32(frames, count)


def drawn_time(time_s: float) -> str:
    """The text drawn on a frame; upstream's rounding prints 59.996 s as `00:00:60.00`, and so does this."""
    minutes, seconds = time_s % 3600 // 60, time_s % 3600 % 60
    return f"time: {int(time_s // 3600):02d}:{int(minutes):02d}:{seconds:05.02f}"


class Ernie45VL:
    """The family's rules behind the common interface."""

    name: ClassVar[str] = "ernie45_vl"
    model_types: ClassVar[frozenset[str]] = frozenset({"ernie4_5_moe_vl", "ernie4_5_vl_moe"})
    rules: ClassVar[Mapping[str, frozenset[str]]] = {
        "vllm": frozenset({"fps", "max_frames", "min_pixels", "max_pixels"}),
        "hf": frozenset({"fps", "num_frames", "min_frames", "max_frames", "min_pixels", "max_pixels"}),
    }
    abilities: ClassVar[Abilities] = Abilities(
        "vllm", "Ernie4_5_VLMoeForConditionalGeneration", encoder_graphs=("image",), needs_remote_code=True
    )
    published: ClassVar[Mapping[str, Any]] = {
        "patch_size": PATCH,
        "merge_size": MERGE,
        "size": {"shortest_edge": CLASS_BOUNDS.min_pixels, "longest_edge": CLASS_BOUNDS.max_pixels},
    }
    frames_are_images: ClassVar[bool] = False
    frames_multiple: ClassVar[int] = TEMPORAL
    least_frames: ClassVar[int] = TEMPORAL
    times_in: ClassVar[Literal["prompt", "pixels"]] = "pixels"
    slot_word: ClassVar[str] = SLOT
    vision_word: ClassVar[str] = PLACEHOLDER

    def complete(self, sampling: Sampling, processor: Mapping[str, Any]) -> Sampling:
        """See `Family.complete`. Neither rule has a default rate: the clip is thinned to the cap."""
        bounds = bounds_of(processor, CLASS_BOUNDS)
        frames = {"max_frames": VLLM_MAX_FRAMES}
        if rule_of(self, sampling) == "hf":
            frames = {
                "min_frames": processor.get("min_frames", HF_MIN_FRAMES),
                "max_frames": processor.get("max_frames", HF_MAX_FRAMES),
            }
        complete = fill(self, sampling, {**frames, "min_pixels": bounds.min_pixels, "max_pixels": bounds.max_pixels})
        low, high, exact = complete.min_frames, complete.max_frames, complete.num_frames
        if exact is not None and low is not None and high is not None and not low <= exact <= high:
            raise CapabilityError(
                f"sampling.num_frames: {self.name} takes {low} to {high} frames under its rule 'hf', found {exact}. "
                "Change it, or sampling.min_frames and sampling.max_frames with it."
            )
        return complete

    def choose_frames(self, frames: int, fps: float, sampling: Sampling) -> list[int]:
        """See `Family.choose_frames`. Even in number, and never the index past the end that upstream may give."""
        if sampling.rule == "vllm":
            return padded(self, uniform_indices(frames, fps, target_fps=sampling.fps, max_frames=sampling.max_frames))
        if sampling.num_frames is not None:  # upstream raises where the clip is shorter
            return padded(self, _existing(steps_float32(frames, min(sampling.num_frames, frames)), frames))
        assert sampling.min_frames is not None and sampling.max_frames is not None
        indices = hf_indices(
            frames,
            fps if fps > 0 else ASSUMED_FPS,
            target_fps=sampling.fps,
            min_frames=sampling.min_frames,
            max_frames=sampling.max_frames,
        )
        return padded(self, _existing(indices, frames))

    def layout(
        self, frames: int, width: int, height: int, sampling: Sampling, processor: Mapping[str, Any]
    ) -> VideoLayout:
        """See `Family.layout`. Two frames make one row of tokens."""
        assert sampling.min_pixels is not None and sampling.max_pixels is not None
        patch, merge = processor.get("patch_size", PATCH), processor.get("merge_size", MERGE)
        resize = hf_resize if sampling.rule == "hf" else vllm_resize
        out_h, out_w = resize(
            height,
            width,
            factor=patch * merge,
            min_pixels=sampling.min_pixels,
            max_pixels=sampling.max_pixels,
        )
        grid = (frames + -frames % TEMPORAL, out_h // patch, out_w // patch)
        return VideoLayout((out_w, out_h), grid, math.prod(grid) // (TEMPORAL * merge**2), merge)

    def time_texts(self, times_s: Sequence[float], sampling: Sampling) -> list[str]:
        """See `Family.time_texts`: `time: 00:00:01.20`, drawn in the upper left corner of each frame."""
        return [drawn_time(time_s) for time_s in times_s]

    def prompt(self, times_s: Sequence[float], layout: VideoLayout, sampling: Sampling) -> list[Span]:
        """See `Family.prompt`: no times, they are on the pixels."""
        return [Span(START, 1), Span(PLACEHOLDER, layout.vision_tokens), Span(END, 1)]

    def engine_metadata(self, clock: FrameClock, sampling: Sampling) -> dict[str, Any]:
        """See `Family.engine_metadata`. The checkpoint's processor draws what this says."""
        return vllm_metadata(clock)

    def processor_kwargs(self, sampling: Sampling, processor: Mapping[str, Any]) -> dict[str, Any]:
        """See `Family.processor_kwargs`."""
        return {"min_pixels": sampling.min_pixels, "max_pixels": sampling.max_pixels}


def _existing(indices: list[int], frames: int) -> list[int]:
    return [index for index in indices if index < frames]
