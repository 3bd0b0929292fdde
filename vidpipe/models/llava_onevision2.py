"""LLaVA-OneVision-2: an even number of frames, each an image of its own with its own time before it.

Sources: vLLM `model_executor/models/llava_onevision2.py`
(`_expand_video_markers_in_prompt`); the LLaVA-OneVision-2 repository's `smart_resize`. The
index rules are in `llava_onevision2_sampling`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from vidpipe.errors import CapabilityError
from vidpipe.models.clock import FrameClock, vllm_metadata
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
from vidpipe.models.llava_onevision2_codec import complete_codec
from vidpipe.models.llava_onevision2_sampling import (
    DEFAULT_FPS,
    VLLM_MAX_FRAMES,
    eval_indices,
    native_count,
    native_indices,
    native_time_s,
    vllm_indices,
)
from vidpipe.models.prompt import Span
from vidpipe.models.resize import fit_area, qwen2_vl_resize
from vidpipe.recipe.schema import Sampling

PATCH, MERGE = 14, 2
START, IMAGE, END = "<|vision_start|>", "<|image_pad|>", "<|vision_end|>"
SLOT = "<|video_pad|>"
NATIVE_MAX_FRAMES = 384
EVAL_MAX_FRAMES, EVAL_PIXELS = 128, 153_664
"""What the published scores used for VSI-Bench; other benchmarks have their own."""
CLASS_BOUNDS = Bounds(56 * 56, 28 * 28 * 1280)
TIME_DECIMALS = 1


def time_tag(time_s: float) -> str:
    """The text before a frame shown at `time_s`, as the model was trained with it."""
    return f"<{time_s:.{TIME_DECIMALS}f} seconds>"


def repo_resize(height: int, width: int, *, factor: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
    """Height and width after the repository's own `smart_resize`: any shape is taken and a side may vanish."""
    return fit_area(
        height, width, factor=factor, min_pixels=min_pixels, max_pixels=max_pixels, least=factor, least_when_shrunk=0
    )


def frame_layout(
    height: int, width: int, *, patch: int, merge: int, min_pixels: int, max_pixels: int
) -> tuple[int, int, int]:
    """Height and width of a frame, and its tokens.

    Raises:
        MediaError: `aspect_ratio`.
    """
    out_h, out_w = qwen2_vl_resize(
        "LLaVA-OneVision-2", height, width, factor=patch * merge, min_pixels=min_pixels, max_pixels=max_pixels
    )
    return out_h, out_w, (out_h // patch) * (out_w // patch) // merge**2


def image_layout(width: int, height: int, processor: Mapping[str, Any]) -> ImageLayout:
    """Size and tokens of a still image under the image processor's settings.

    Raises:
        MediaError: `aspect_ratio`.
    """
    bounds = bounds_of(processor, CLASS_BOUNDS)
    out_h, out_w, tokens = frame_layout(
        height,
        width,
        patch=processor.get("patch_size", PATCH),
        merge=processor.get("merge_size", MERGE),
        min_pixels=bounds.min_pixels,
        max_pixels=bounds.max_pixels,
    )
    return ImageLayout((out_w, out_h), tokens)


class LlavaOnevision2:
    """The family's rules behind the common interface."""

    name: ClassVar[str] = "llava_onevision2"
    model_types: ClassVar[frozenset[str]] = frozenset({"llava_onevision2"})
    rules: ClassVar[Mapping[str, frozenset[str]]] = {
        "vllm": frozenset({"fps", "max_frames", "min_pixels", "max_pixels"}),
        "native": frozenset({"fps", "num_frames", "max_frames", "min_pixels", "max_pixels"}),
        "ov2_eval": frozenset({"fps", "max_frames", "min_pixels", "max_pixels"}),
    }
    abilities: ClassVar[Abilities] = Abilities(
        "vllm",
        "LlavaOnevision2ForConditionalGeneration",
        needs_remote_code=True,
        codec_video=True,
        images=ImageRules(IMAGE, IMAGE, image_layout, beside_videos=False),
        several_videos=True,
        text_between_frames=True,
    )
    published: ClassVar[Mapping[str, Any]] = {"patch_size": PATCH, "merge_size": MERGE}
    frames_are_images: ClassVar[bool] = True
    frames_multiple: ClassVar[int] = 2
    least_frames: ClassVar[int] = 2
    times_in: ClassVar[Literal["prompt", "pixels"]] = "prompt"
    slot_word: ClassVar[str] = SLOT
    vision_word: ClassVar[str] = IMAGE

    def complete(self, sampling: Sampling, processor: Mapping[str, Any]) -> Sampling:
        """See `Family.complete`. Under `ov2_eval` every frame gets the same number of pixels.

        A bound that is given moves the checkpoint's other one, so that they never cross.
        """
        if sampling.video_backend == "codec":
            return complete_codec(self, sampling, processor)
        rule, bounds = rule_of(self, sampling), bounds_of(processor, CLASS_BOUNDS)
        defaults = {
            "min_pixels": min(bounds.min_pixels, sampling.max_pixels or bounds.min_pixels),
            "max_pixels": max(bounds.max_pixels, sampling.min_pixels or bounds.max_pixels),
        }
        if rule == "native":
            return fill(self, sampling, {**defaults, "max_frames": NATIVE_MAX_FRAMES})
        if rule == "vllm":
            return fill(self, sampling, {**defaults, "fps": DEFAULT_FPS, "max_frames": VLLM_MAX_FRAMES})
        pixels = {sampling.min_pixels, sampling.max_pixels} - {None} or {EVAL_PIXELS}
        if len(pixels) > 1:
            raise CapabilityError(
                f"sampling: the rule 'ov2_eval' shows all frames at one size, and min_pixels {sampling.min_pixels} "
                f"is not max_pixels {sampling.max_pixels}. Give one of them."
            )
        (fixed,) = pixels
        frames = {"fps": DEFAULT_FPS, "max_frames": EVAL_MAX_FRAMES}
        return fill(self, sampling, {**frames, "min_pixels": fixed, "max_pixels": fixed})

    def choose_frames(self, frames: int, fps: float, sampling: Sampling) -> list[int]:
        """See `Family.choose_frames`. The count is even: the vision tower takes frames in pairs."""
        assert sampling.max_frames is not None
        if sampling.rule == "native":
            count = native_count(
                frames,
                fps if fps > 0 else 30.0,  # what the repository assumes
                target_fps=sampling.fps,
                num_frames=sampling.num_frames,
                max_frames=sampling.max_frames,
            )
            return padded(self, native_indices(frames, count))
        rule = eval_indices if sampling.rule == "ov2_eval" else vllm_indices
        target_fps = sampling.fps or DEFAULT_FPS
        return padded(self, rule(frames, fps, target_fps=target_fps, max_frames=sampling.max_frames))

    def layout(
        self, frames: int, width: int, height: int, sampling: Sampling, processor: Mapping[str, Any]
    ) -> VideoLayout:
        """See `Family.layout`. The grid's first axis counts frames; vLLM itself keeps one row a frame."""
        assert sampling.min_pixels is not None and sampling.max_pixels is not None
        patch, merge = processor.get("patch_size", PATCH), processor.get("merge_size", MERGE)
        out_h, out_w, tokens = frame_layout(
            height, width, patch=patch, merge=merge, min_pixels=sampling.min_pixels, max_pixels=sampling.max_pixels
        )
        return VideoLayout((out_w, out_h), (frames, out_h // patch, out_w // patch), frames * tokens, merge)

    def time_texts(self, times_s: Sequence[float], sampling: Sampling) -> list[str]:
        """See `Family.time_texts`: `<1.2 seconds>` before each frame."""
        if sampling.rule == "native":
            times_s = [native_time_s(time_s) for time_s in times_s]
        return [time_tag(time_s) for time_s in times_s]

    def prompt(self, times_s: Sequence[float], layout: VideoLayout, sampling: Sampling) -> list[Span]:
        """See `Family.prompt`: nothing stands between or around the frames."""
        image = (Span(START, 1), Span(IMAGE, layout.tokens_per_step), Span(END, 1))
        return [span for text in self.time_texts(times_s, sampling) for span in (Span(text), *image)]

    def engine_metadata(self, clock: FrameClock, sampling: Sampling) -> dict[str, Any]:
        """See `Family.engine_metadata`: the times as they are to be printed.

        vLLM prints times from a float32 copy (`_pack_timestamps`), in which one in thirty falls
        to the other tenth. Whole tenths are printed as they are, whatever is copied.
        """
        rate = 10**TIME_DECIMALS
        ticks = tuple(round(float(text[1:].split()[0]) * rate) for text in self.time_texts(clock.times_s, sampling))
        return vllm_metadata(FrameClock(ticks, float(rate), math.ceil(clock.total / clock.rate * rate) + 1))

    def processor_kwargs(self, sampling: Sampling, processor: Mapping[str, Any]) -> dict[str, Any]:
        """See `Family.processor_kwargs`."""
        return {"size": {"shortest_edge": sampling.min_pixels, "longest_edge": sampling.max_pixels}}
