"""Qwen3-VL: frames at 2 a second, seen in pairs, each pair with the mean of its two times as text.

Sources: vLLM `multimodal/video.py` (Qwen3VLVideoBackend), `model_executor/models/qwen3_vl.py`
(`_calculate_timestamps`, `get_video_repl`); transformers `models/qwen3_vl/video_processing_qwen3_vl.py`
(`sample_frames`, `smart_resize`, `resize`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vidpipe.errors import MediaError
from vidpipe.models.clock import FrameClock
from vidpipe.models.family import VideoLayout
from vidpipe.recipe.schema import Sampling

ASSUMED_FPS = 24.0  # what both upstreams take for a file that does not say
DEFAULT_FPS = 2.0
MIN_FRAMES, MAX_FRAMES = 4, 768
VLLM_MAX_FPS = 30.0
MAX_ASPECT_RATIO = 200
PROCESSOR_DEFAULTS = {
    "patch_size": 16,
    "merge_size": 2,
    "temporal_patch_size": 2,
    "cap_pixels_per_frame": None,
    "max_video_tokens": 768,
}
DEFAULT_SIZE = {"shortest_edge": 131_072, "longest_edge": 786_432}


def sample_indices(
    frames: int,
    fps: float,
    *,
    target_fps: float = DEFAULT_FPS,
    min_frames: int = MIN_FRAMES,
    max_frames: int = MAX_FRAMES,
    rule: str = "vllm",
) -> list[int]:
    """Frame indices as upstream samples them: evenly from the first to the last frame.

    Args:
        frames: Frames in the clip.
        fps: Average rate of the clip; 0 or less means unknown.
        target_fps: Frames per second to aim for.
        min_frames: Lower bound, unless the clip has fewer.
        max_frames: Upper bound.
        rule: `vllm` (its loader caps the target at 30 fps and the count at 768) or `hf`.
    """
    if frames <= 0:
        return []
    if rule == "vllm":
        target_fps, max_frames = min(target_fps, VLLM_MAX_FPS), min(max_frames, MAX_FRAMES)
    count = int(frames / (fps if fps > 0 else ASSUMED_FPS) * target_fps)
    count = min(max(count, min_frames), max_frames, frames)
    indices: list[int] = np.linspace(0, frames - 1, count).round().astype(np.int64).tolist()
    return indices


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
    if max(height, width) / min(height, width) > MAX_ASPECT_RATIO:
        raise MediaError(
            "aspect_ratio",
            f"frames of {width}x{height} pixels: Qwen3-VL takes no side over {MAX_ASPECT_RATIO} times the other. "
            "Crop or pad the clip.",
        )
    out_h, out_w = round(height / factor) * factor, round(width / factor) * factor
    padded = round(frames / temporal_factor) * temporal_factor
    if padded * out_h * out_w > max_volume:
        beta = math.sqrt(frames * height * width / max_volume)
        out_h = max(factor, math.floor(height / beta / factor) * factor)
        out_w = max(factor, math.floor(width / beta / factor) * factor)
    elif padded * out_h * out_w < min_volume:
        beta = math.sqrt(min_volume / (frames * height * width))
        out_h, out_w = math.ceil(height * beta / factor) * factor, math.ceil(width * beta / factor) * factor
    return out_h, out_w


def video_layout(frames: int, height: int, width: int, processor: Mapping[str, Any]) -> VideoLayout:
    """Size, grid and tokens under a video processor's settings (keys of `video_preprocessor_config.json`)."""
    settings = {**PROCESSOR_DEFAULTS, **processor}
    size = {**DEFAULT_SIZE, **(settings.get("size") or {})}
    patch, merge, temporal = (settings[key] for key in ("patch_size", "merge_size", "temporal_patch_size"))
    factor = patch * merge
    max_volume = size["longest_edge"]
    if settings["cap_pixels_per_frame"]:
        per_frame = min(settings["max_video_tokens"] * factor * factor, size["longest_edge"] // frames)
        max_volume = max(per_frame, int(size["shortest_edge"] * 1.05)) * frames
    out_h, out_w = smart_resize(
        frames,
        height,
        width,
        factor=factor,
        temporal_factor=temporal,
        min_volume=size["shortest_edge"],
        max_volume=max_volume,
    )
    grid = (-(-frames // temporal), out_h // patch, out_w // patch)
    return VideoLayout((out_w, out_h), grid, math.prod(grid) // merge**2)


class Qwen3VL:
    """The family's rules behind the common interface."""

    name = "qwen3_vl"
    model_types = frozenset({"qwen3_vl", "qwen3_vl_moe"})

    def complete(self, sampling: Sampling, processor: Mapping[str, Any]) -> Sampling:
        """See `Family.complete`. The frame bounds come from the checkpoint's processor where it has them."""
        size = {**DEFAULT_SIZE, **(processor.get("size") or {})}
        defaults = {
            "fps": DEFAULT_FPS,
            "min_frames": processor.get("min_frames", MIN_FRAMES),
            "max_frames": processor.get("max_frames", MAX_FRAMES),
            "min_pixels": size["shortest_edge"],
            "max_pixels": size["longest_edge"],
        }
        return sampling.model_copy(update={k: v for k, v in defaults.items() if getattr(sampling, k) is None})

    def choose_frames(self, frames: int, fps: float, sampling: Sampling) -> list[int]:
        """See `Family.choose_frames`. A clip of one frame shows it twice: upstream's resize raises on a lone frame."""
        assert sampling.fps is not None and sampling.min_frames is not None and sampling.max_frames is not None
        indices = sample_indices(
            frames,
            fps,
            target_fps=sampling.fps,
            min_frames=sampling.min_frames,
            max_frames=sampling.max_frames,
            rule=sampling.rule,
        )
        return indices * 2 if len(indices) == 1 else indices

    def layout(
        self, frames: int, width: int, height: int, sampling: Sampling, processor: Mapping[str, Any]
    ) -> VideoLayout:
        """See `Family.layout`."""
        return video_layout(frames, height, width, {**processor, **self.processor_kwargs(sampling, processor)})

    def time_texts(self, times_s: Sequence[float]) -> list[str]:
        """See `Family.time_texts`: `<1.2 seconds>` before each pair."""
        return [f"<{time_s:.1f} seconds>" for time_s in pair_times(times_s)]

    def engine_metadata(self, clock: FrameClock) -> dict[str, Any]:
        """See `Family.engine_metadata`. Without `do_sample_frames: False` the processor would sample once more."""
        return {
            "fps": clock.rate,
            "duration": clock.total / clock.rate,
            "total_num_frames": clock.total,
            "frames_indices": list(clock.ticks),
            "video_backend": "opencv",
            "do_sample_frames": False,
        }

    def processor_kwargs(self, sampling: Sampling, processor: Mapping[str, Any]) -> dict[str, Any]:
        """See `Family.processor_kwargs`. Says the per-frame cap too: transformers 5.22 turns its default round."""
        return {
            "size": {"shortest_edge": sampling.min_pixels, "longest_edge": sampling.max_pixels},
            "cap_pixels_per_frame": bool(processor.get("cap_pixels_per_frame")),
        }
