"""Qwen3-VL: frames at 2 a second, seen in pairs, each pair with the mean of its two times as text.

Sources: vLLM `multimodal/video.py` (Qwen3VLVideoBackend), `model_executor/models/qwen3_vl.py`
(`_calculate_timestamps`, `get_video_repl`); transformers `models/qwen3_vl/video_processing_qwen3_vl.py`
(`sample_frames`, `smart_resize`, `resize`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from vidpipe.models.clock import FrameClock, vllm_metadata
from vidpipe.models.family import Abilities, Bounds, ImageLayout, ImageRules, VideoLayout, bounds_of, fill, padded
from vidpipe.models.indices import spread_rounded
from vidpipe.models.prompt import Span
from vidpipe.models.qwen3_vl_prompt import END, IMAGE, START, VIDEO, pairs
from vidpipe.models.resize import ceil_to, check_aspect_ratio, floor_to, qwen2_vl_resize, round_to
from vidpipe.recipe.schema import Sampling

ASSUMED_FPS = 24.0  # what both upstreams take for a file that does not say
DEFAULT_FPS = 2.0
MIN_FRAMES, MAX_FRAMES = 4, 768
VLLM_MAX_FPS = 30.0
PROCESSOR_DEFAULTS = {
    "patch_size": 16,
    "merge_size": 2,
    "temporal_patch_size": 2,
    "cap_pixels_per_frame": None,
    "max_video_tokens": 768,
}
CLASS_BOUNDS = Bounds(131_072, 786_432)
"""What transformers' class assumes; checkpoints ship 4,096 to 25,165,824, without which a clip gets 384 tokens."""

IMAGE_BOUNDS = Bounds(65_536, 16_777_216)
"""Pixels of a still image, as the published checkpoints have them."""


def sample_indices(
    frames: int,
    fps: float,
    *,
    target_fps: float = DEFAULT_FPS,
    min_frames: int = MIN_FRAMES,
    max_frames: int = MAX_FRAMES,
    num_frames: int | None = None,
    rule: str = "vllm",
) -> list[int]:
    """Frame indices as upstream samples them: evenly from the first to the last frame.

    Args:
        frames: Frames in the clip.
        fps: Average rate of the clip; 0 or less means unknown.
        target_fps: Frames per second to aim for.
        min_frames: Lower bound, unless the clip has fewer.
        max_frames: Upper bound.
        num_frames: Exact count in place of the rate (`hf` only); more than the clip has repeats frames.
        rule: `vllm` (its loader caps the target at 30 fps and the count at 768) or `hf`.
    """
    if frames <= 0:
        return []
    if rule == "vllm":
        target_fps, max_frames = min(target_fps, VLLM_MAX_FPS), min(max_frames, MAX_FRAMES)
    if num_frames is not None:
        return spread_rounded(frames, num_frames)
    count = int(frames / (fps if fps > 0 else ASSUMED_FPS) * target_fps)
    return spread_rounded(frames, min(max(count, min_frames), max_frames, frames))


def pair_times(times_s: Sequence[float]) -> list[float]:
    """Mean time of each pair of frames; an odd last frame pairs with itself."""
    padded = [*times_s, times_s[-1]] if len(times_s) % 2 else list(times_s)
    return [(padded[i] + padded[i + 1]) / 2 for i in range(0, len(padded), 2)]


def smart_resize(
    frames: int, height: int, width: int, *, factor: int, temporal_factor: int, min_volume: int, max_volume: int
) -> tuple[int, int]:
    """Height and width, multiples of `factor`, that bring frames x height x width into the bounds.

    Follows transformers' function of this name to the rounding: half-even rounding of
    the frame count, so 5 frames count as 4, and the padded volume may exceed `max_volume`.

    Raises:
        MediaError: `aspect_ratio`, when one side is over 200 times the other.
        ValueError: fewer frames than one temporal patch.
    """
    if frames < temporal_factor:
        raise ValueError(f"{frames} frames are less than one temporal patch of {temporal_factor}")
    if height < factor or width < factor:
        scale = max(factor / height, factor / width)
        height, width = int(height * scale), int(width * scale)
    check_aspect_ratio("Qwen3-VL", height, width)
    out_h, out_w = round_to(height, factor), round_to(width, factor)
    padded = round(frames / temporal_factor) * temporal_factor
    if padded * out_h * out_w > max_volume:
        beta = math.sqrt(frames * height * width / max_volume)
        out_h, out_w = max(factor, floor_to(height / beta, factor)), max(factor, floor_to(width / beta, factor))
    elif padded * out_h * out_w < min_volume:
        beta = math.sqrt(min_volume / (frames * height * width))
        out_h, out_w = ceil_to(height * beta, factor), ceil_to(width * beta, factor)
    return out_h, out_w


def video_layout(frames: int, height: int, width: int, processor: Mapping[str, Any]) -> VideoLayout:
    """Size, grid and tokens under a video processor's settings (keys of `video_preprocessor_config.json`)."""
    settings = {**PROCESSOR_DEFAULTS, **processor}
    bounds = bounds_of(processor, CLASS_BOUNDS)
    patch, merge, temporal = (settings[key] for key in ("patch_size", "merge_size", "temporal_patch_size"))
    factor = patch * merge
    max_volume = bounds.max_pixels
    if settings["cap_pixels_per_frame"]:
        per_frame = min(settings["max_video_tokens"] * factor * factor, bounds.max_pixels // frames)
        max_volume = max(per_frame, int(bounds.min_pixels * 1.05)) * frames
    out_h, out_w = smart_resize(
        frames,
        height,
        width,
        factor=factor,
        temporal_factor=temporal,
        min_volume=bounds.min_pixels,
        max_volume=max_volume,
    )
    grid = (-(-frames // temporal), out_h // patch, out_w // patch)
    return VideoLayout((out_w, out_h), grid, math.prod(grid) // merge**2, merge)


def image_layout(width: int, height: int, processor: Mapping[str, Any]) -> ImageLayout:
    """Size and tokens of a still image under an image processor's settings (keys of `preprocessor_config.json`).

    Raises:
        MediaError: `aspect_ratio`.
    """
    settings = {**PROCESSOR_DEFAULTS, **processor}
    bounds = bounds_of(processor, IMAGE_BOUNDS)
    patch, merge = settings["patch_size"], settings["merge_size"]
    out_h, out_w = qwen2_vl_resize(
        "Qwen3-VL",
        height,
        width,
        factor=patch * merge,
        min_pixels=bounds.min_pixels,
        max_pixels=bounds.max_pixels,
    )
    return ImageLayout((out_w, out_h), (out_h // patch) * (out_w // patch) // merge**2)


class Qwen3VL:
    """The family's rules behind the common interface."""

    name: ClassVar[str] = "qwen3_vl"
    model_types: ClassVar[frozenset[str]] = frozenset({"qwen3_vl", "qwen3_vl_moe"})
    rules: ClassVar[Mapping[str, frozenset[str]]] = {
        "vllm": frozenset({"fps", "min_frames", "max_frames", "min_pixels", "max_pixels"}),
        "hf": frozenset({"fps", "num_frames", "min_frames", "max_frames", "min_pixels", "max_pixels"}),
    }
    abilities: ClassVar[Abilities] = Abilities(
        "vllm",
        "Qwen3VLForConditionalGeneration",
        ("evs", "vidcom2"),
        ("image", "video"),
        encoder_data_parallel=True,
        images=ImageRules(IMAGE, IMAGE, image_layout),
        several_videos=True,
        text_between_frames=True,
        other_engines=("sglang",),
    )
    published: ClassVar[Mapping[str, Any]] = {
        **PROCESSOR_DEFAULTS,
        "size": {"shortest_edge": 4_096, "longest_edge": 25_165_824},
    }
    frames_are_images: ClassVar[bool] = False
    frames_multiple: ClassVar[int] = 1
    least_frames: ClassVar[int] = 2  # upstream's resize raises on a lone frame
    times_in: ClassVar[Literal["prompt", "pixels"]] = "prompt"
    slot_word: ClassVar[str] = VIDEO
    vision_word: ClassVar[str] = VIDEO

    def complete(self, sampling: Sampling, processor: Mapping[str, Any]) -> Sampling:
        """See `Family.complete`. The frame bounds come from the checkpoint's processor where it has them."""
        bounds = bounds_of(processor, CLASS_BOUNDS)
        defaults = {
            "min_frames": processor.get("min_frames", MIN_FRAMES),
            "max_frames": processor.get("max_frames", MAX_FRAMES),
            "min_pixels": bounds.min_pixels,
            "max_pixels": bounds.max_pixels,
        }
        if sampling.num_frames is None:
            defaults["fps"] = DEFAULT_FPS
        return fill(self, sampling, defaults)

    def choose_frames(self, frames: int, fps: float, sampling: Sampling) -> list[int]:
        """See `Family.choose_frames`. A clip of one frame shows it twice."""
        assert sampling.min_frames is not None and sampling.max_frames is not None
        indices = sample_indices(
            frames,
            fps,
            target_fps=sampling.fps or DEFAULT_FPS,
            min_frames=sampling.min_frames,
            max_frames=sampling.max_frames,
            num_frames=sampling.num_frames,
            rule=sampling.rule or "vllm",
        )
        return padded(self, indices)

    def layout(
        self, frames: int, width: int, height: int, sampling: Sampling, processor: Mapping[str, Any]
    ) -> VideoLayout:
        """See `Family.layout`."""
        return video_layout(frames, height, width, {**processor, **self.processor_kwargs(sampling, processor)})

    def time_texts(self, times_s: Sequence[float], sampling: Sampling) -> list[str]:
        """See `Family.time_texts`: `<1.2 seconds>` before each pair."""
        return [f"<{time_s:.1f} seconds>" for time_s in pair_times(times_s)]

    def prompt(self, times_s: Sequence[float], layout: VideoLayout, sampling: Sampling) -> list[Span]:
        """See `Family.prompt`. The chat template's start and end stay around the whole video (transformers >= 5.10)."""
        texts = self.time_texts(times_s, sampling)
        return [Span(START, 1), *pairs(texts, [layout.tokens_per_step] * len(texts)), Span(END, 1)]

    def engine_metadata(self, clock: FrameClock, sampling: Sampling) -> dict[str, Any]:
        """See `Family.engine_metadata`."""
        return vllm_metadata(clock)

    def processor_kwargs(self, sampling: Sampling, processor: Mapping[str, Any]) -> dict[str, Any]:
        """See `Family.processor_kwargs`. Says the per-frame cap too: transformers 5.22 turns its default round."""
        return {
            "size": {"shortest_edge": sampling.min_pixels, "longest_edge": sampling.max_pixels},
            "cap_pixels_per_frame": bool(processor.get("cap_pixels_per_frame")),
        }
