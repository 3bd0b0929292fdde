"""ERNIE-4.5-VL: an even number of frames, joined in pairs behind the encoder, with their times drawn on the pixels.

vLLM has no loader for it and would send 32 frames whatever the clip; here the frames are chosen as the
checkpoint's own processor chooses them, and drawn on before vLLM sees them (`video.draw`).

Sources: vLLM `model_executor/models/ernie45_vl.py` (`get_replacement_ernie45vl`); the checkpoint's
`processing_ernie4_5_vl.py`; transformers `models/ernie4_5_vl_moe` (`_convert_timestamp`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from vidpipe.errors import CapabilityError
from vidpipe.models.clock import FrameClock, vllm_metadata
from vidpipe.models.ernie45_vl_resize import hf_resize, vllm_resize
from vidpipe.models.ernie45_vl_sampling import (
    MAX_FRAMES,
    MIN_FRAMES,
    NATIVE_FPS,
    hf_indices,
    native_indices,
    uniform_indices,
)
from vidpipe.models.family import (
    Abilities,
    Bounds,
    ImageLayout,
    ImageRules,
    VideoLayout,
    bounds_of,
    fill,
    padded,
    rule_of,
)
from vidpipe.models.indices import steps_float32
from vidpipe.models.prompt import Span
from vidpipe.recipe.schema import Sampling

PATCH, MERGE, TEMPORAL = 14, 2, 2
START, PLACEHOLDER, END = "<|VIDEO_START|>", "<|IMAGE_PLACEHOLDER|>", "<|VIDEO_END|>"
SLOT, IMAGE_SLOT = "<|video@placeholder|>", "<|image@placeholder|>"
VLLM_MAX_FRAMES = 32
ASSUMED_FPS = 24.0
CLASS_BOUNDS = Bounds(299 * 28 * 28, 1196 * 28 * 28)
IMAGE_BOUNDS = Bounds(56 * 56, 6177 * 28 * 28)


def drawn_time(time_s: float) -> str:
    """The text drawn on a frame; upstream's rounding prints 59.996 s as `00:00:60.00`, and so does this."""
    minutes, seconds = time_s % 3600 // 60, time_s % 3600 % 60
    return f"time: {int(time_s // 3600):02d}:{int(minutes):02d}:{seconds:05.02f}"


def image_layout(width: int, height: int, processor: Mapping[str, Any]) -> ImageLayout:
    """Size and tokens of a still image under an image processor's settings (keys of `preprocessor_config.json`).

    Raises:
        MediaError: `aspect_ratio`.
    """
    patch, merge = processor.get("patch_size", PATCH), processor.get("merge_size", MERGE)
    bounds = bounds_of(processor, IMAGE_BOUNDS)
    limits = {"min_pixels": bounds.min_pixels, "max_pixels": bounds.max_pixels}
    out_h, out_w = hf_resize(height, width, factor=patch * merge, **limits)
    return ImageLayout((out_w, out_h), (out_h // patch) * (out_w // patch) // merge**2)


class Ernie45VL:
    """The family's rules behind the common interface."""

    name: ClassVar[str] = "ernie45_vl"
    model_types: ClassVar[frozenset[str]] = frozenset({"ernie4_5_moe_vl", "ernie4_5_vl_moe"})
    rules: ClassVar[Mapping[str, frozenset[str]]] = {
        "native": frozenset({"fps", "num_frames", "min_frames", "max_frames", "min_pixels", "max_pixels"}),
        "vllm": frozenset({"fps", "max_frames", "min_pixels", "max_pixels"}),
        "hf": frozenset({"fps", "num_frames", "min_frames", "max_frames", "min_pixels", "max_pixels"}),
    }
    abilities: ClassVar[Abilities] = Abilities(
        "vllm",
        "Ernie4_5_VLMoeForConditionalGeneration",
        encoder_graphs=("image",),
        needs_remote_code=True,
        images=ImageRules(IMAGE_SLOT, PLACEHOLDER, image_layout),
        several_videos=True,
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
        """See `Family.complete`. `hf` and `vllm` have no default rate: the clip is thinned to the cap."""
        rule = rule_of(self, sampling)
        bounds = video_bounds(processor)
        defaults: dict[str, Any] = {"max_frames": VLLM_MAX_FRAMES}
        if rule != "vllm":
            defaults = {
                "min_frames": processor.get("min_frames", MIN_FRAMES),
                "max_frames": processor.get("max_frames", MAX_FRAMES),
            }
            # A bound that is set moves the other one's default, rather than cross it.
            if sampling.max_frames is not None:
                defaults["min_frames"] = min(defaults["min_frames"], sampling.max_frames)
            elif sampling.min_frames is not None:
                defaults["max_frames"] = max(defaults["max_frames"], sampling.min_frames)
        if rule == "native" and sampling.num_frames is None:
            defaults["fps"] = NATIVE_FPS
        defaults |= {"min_pixels": bounds.min_pixels, "max_pixels": bounds.max_pixels}
        complete = fill(self, sampling, defaults)
        low, high, exact = complete.min_frames, complete.max_frames, complete.num_frames
        if exact is not None and low is not None and high is not None and not low <= exact <= high:
            raise CapabilityError(
                f"sampling.num_frames: {self.name} takes {low} to {high} frames under its rule {rule!r}, found {exact}."
                " Change it, or sampling.min_frames and sampling.max_frames with it."
            )
        return complete

    def choose_frames(self, frames: int, fps: float, sampling: Sampling) -> list[int]:
        """See `Family.choose_frames`. Even in number, and never the index past the end that upstream may give."""
        if sampling.rule == "vllm":
            return padded(self, uniform_indices(frames, fps, target_fps=sampling.fps, max_frames=sampling.max_frames))
        assert sampling.min_frames is not None and sampling.max_frames is not None
        bounds = {"min_frames": sampling.min_frames, "max_frames": sampling.max_frames}
        rate = fps if fps > 0 else ASSUMED_FPS
        if sampling.rule == "native":
            target_fps = sampling.fps or NATIVE_FPS
            indices = native_indices(frames, rate, target_fps=target_fps, num_frames=sampling.num_frames, **bounds)
            return padded(self, indices[: sampling.max_frames])
        if sampling.num_frames is not None:  # upstream raises where the clip is shorter
            return padded(self, _existing(steps_float32(frames, min(sampling.num_frames, frames)), frames))
        return padded(self, _existing(hf_indices(frames, rate, target_fps=sampling.fps, **bounds), frames))

    def layout(
        self, frames: int, width: int, height: int, sampling: Sampling, processor: Mapping[str, Any]
    ) -> VideoLayout:
        """See `Family.layout`. Two frames make one row of tokens."""
        assert sampling.min_pixels is not None and sampling.max_pixels is not None
        patch, merge = processor.get("patch_size", PATCH), processor.get("merge_size", MERGE)
        resize = vllm_resize if sampling.rule == "vllm" else hf_resize
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
        """See `Family.engine_metadata`. vLLM wants it, the checkpoint's processor never sees it: times are drawn."""
        return vllm_metadata(clock)

    def processor_kwargs(self, sampling: Sampling, processor: Mapping[str, Any]) -> dict[str, Any]:
        """See `Family.processor_kwargs`. `min_pixels` would be the bound of its images."""
        return {"video_min_pixels": sampling.min_pixels, "video_max_pixels": sampling.max_pixels}


def video_bounds(processor: Mapping[str, Any]) -> Bounds:
    """The pixel bounds of frames; those in an image processor's file are no bounds of videos."""
    return CLASS_BOUNDS if "image_processor_type" in processor else bounds_of(processor, CLASS_BOUNDS)


def _existing(indices: list[int], frames: int) -> list[int]:
    return [index for index in indices if index < frames]
