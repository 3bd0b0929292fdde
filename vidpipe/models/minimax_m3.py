"""MiniMax-M3: frames at least an interval apart, seen in pairs, each pair with the time of its first frame.

Sources: vLLM `models/minimax_m3/common/mm_preprocess.py` (MiniMaxM3VideoBackend,
`_get_prompt_updates`); transformers `models/minimax_m3_vl` (`replace_video_token`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from vidpipe.errors import MediaError
from vidpipe.models.clock import FrameClock, vllm_metadata
from vidpipe.models.family import Abilities, Bounds, ImageLayout, ImageRules, VideoLayout, fill
from vidpipe.models.indices import spread_rounded
from vidpipe.models.minimax_m3_vision import smart_resize
from vidpipe.models.prompt import Span
from vidpipe.recipe.schema import Sampling

PATCH, MERGE, TEMPORAL = 14, 2, 2
START, VIDEO, END = "]<]start of image[>[", "]<]video[>[", "]<]end of image[>["
IMAGE = "]<]image[>["
DEFAULT_FPS = 1.0
MAX_FRAMES = 768
"""Upstream states this number and never reads it; here it holds, so that an hour does not become 3,600 frames."""
GRACE_S = 1e-4
CLASS_BOUNDS = Bounds(4 * 28 * 28, 768 * 28 * 28)
VIDEO_MAX_VOLUME, IMAGE_MAX_AREA = 301_056_000, 12_845_056
IMAGE_MAX_PIXELS = 672 * 672


def interval_indices(frames: int, fps: float, *, target_fps: float = DEFAULT_FPS) -> list[int]:
    """Frame indices: the first frame, then always the first one that is 1 / `target_fps` later than the last one kept.

    Rounding up builds on itself, so the rate stays below the target unless it divides
    `fps`. There is no bound on the number. Without a known rate only the first frame.
    """
    if frames <= 0:
        return []
    kept = [0]
    if fps <= 0 or target_fps <= 0:
        return kept
    interval_s = 1.0 / target_fps
    while (following := max(math.ceil((kept[-1] / fps + interval_s - GRACE_S) * fps), kept[-1] + 1)) < frames:
        kept.append(following)
    return kept


def steps_of(frames: int) -> int:
    """Temporal patches of `frames` frames; an odd last frame is repeated."""
    return -(-frames // TEMPORAL)


def step_times(times_s: Sequence[float]) -> list[float]:
    """Time of each pair: that of its first frame, not the mean."""
    return list(times_s[::TEMPORAL])


def time_tag(time_s: float) -> str:
    """The text before a pair."""
    return f"]<]{time_s:.1f} seconds[>["


def spans(time_texts: Sequence[str], tokens_per_pair: int) -> list[Span]:
    """The video in the prompt: per pair its time, start, vision tokens, end (those of images)."""
    pair = (Span(START, 1), Span(VIDEO, tokens_per_pair), Span(END, 1))
    return [span for text in time_texts for span in (Span(text), *pair)]


def image_layout(width: int, height: int, processor: Mapping[str, Any]) -> ImageLayout:
    """Size and tokens of a still image under an image processor's settings (keys of `preprocessor_config.json`).

    Raises:
        MediaError: `aspect_ratio`, or `too_large` where the long side is bounded in place of the area.
    """
    patch, merge = processor.get("patch_size", PATCH), processor.get("merge_size", MERGE)
    long_side = processor.get("max_long_side_pixel")
    out_h, out_w = smart_resize(
        height,
        width,
        factor=patch * merge,
        min_pixels=CLASS_BOUNDS.min_pixels,
        max_pixels=processor.get("max_pixels", IMAGE_MAX_PIXELS),
        max_long_side=long_side,
    )
    if long_side is not None and out_h * out_w > IMAGE_MAX_AREA:
        raise MediaError(
            "too_large", f"an image of {out_w}x{out_h} pixels is over MiniMax-M3's {IMAGE_MAX_AREA}. Scale it down."
        )
    return ImageLayout((out_w, out_h), (out_h // patch) * (out_w // patch) // merge**2)


class MiniMaxM3:
    """The family's rules behind the common interface."""

    name: ClassVar[str] = "minimax_m3"
    model_types: ClassVar[frozenset[str]] = frozenset({"minimax_m3_vl"})
    rules: ClassVar[Mapping[str, frozenset[str]]] = {
        "vllm": frozenset({"fps", "max_frames", "min_pixels", "max_pixels"})
    }
    abilities: ClassVar[Abilities] = Abilities(
        "vllm",
        "MiniMaxM3SparseForConditionalGeneration",
        encoder_graphs=("image",),
        encoder_data_parallel=True,
        images=ImageRules(IMAGE, IMAGE, image_layout),
        several_videos=True,
        text_between_frames=True,
        # With its cache on (the default) vLLM's processor forgets the videos' metadata and the prompt has no times.
        engine_args={"mm_processor_cache_gb": 0},
    )
    published: ClassVar[Mapping[str, Any]] = {
        "patch_size": PATCH,
        "merge_size": MERGE,
        "temporal_patch_size": TEMPORAL,
        "min_pixels": CLASS_BOUNDS.min_pixels,
        "max_pixels": CLASS_BOUNDS.max_pixels,
    }
    frames_are_images: ClassVar[bool] = False
    frames_multiple: ClassVar[int] = 1
    least_frames: ClassVar[int] = 1
    times_in: ClassVar[Literal["prompt", "pixels"]] = "prompt"
    slot_word: ClassVar[str] = VIDEO
    vision_word: ClassVar[str] = VIDEO

    def complete(self, sampling: Sampling, processor: Mapping[str, Any]) -> Sampling:
        """See `Family.complete`."""
        low, high = (processor.get(key, getattr(CLASS_BOUNDS, key)) for key in ("min_pixels", "max_pixels"))
        frames = {"fps": DEFAULT_FPS, "max_frames": processor.get("max_frames", MAX_FRAMES)}
        return fill(self, sampling, {**frames, "min_pixels": low, "max_pixels": high})

    def choose_frames(self, frames: int, fps: float, sampling: Sampling) -> list[int]:
        """See `Family.choose_frames`. Beyond the cap, the rule's frames are thinned evenly, first and last kept."""
        assert sampling.max_frames is not None
        indices = interval_indices(frames, fps, target_fps=sampling.fps or DEFAULT_FPS)
        if len(indices) <= sampling.max_frames:
            return indices
        return [indices[place] for place in spread_rounded(len(indices), sampling.max_frames)]

    def layout(
        self, frames: int, width: int, height: int, sampling: Sampling, processor: Mapping[str, Any]
    ) -> VideoLayout:
        """See `Family.layout`."""
        assert sampling.min_pixels is not None and sampling.max_pixels is not None
        patch, merge = processor.get("patch_size", PATCH), processor.get("merge_size", MERGE)
        long_side = processor.get("max_long_side_pixel")
        out_h, out_w = smart_resize(
            height,
            width,
            factor=patch * merge,
            min_pixels=sampling.min_pixels,
            max_pixels=sampling.max_pixels,
            max_long_side=long_side,
        )
        if long_side is not None and out_h * out_w * frames > VIDEO_MAX_VOLUME:
            raise MediaError(
                "too_large",
                f"{frames} frames of {out_w}x{out_h} pixels are {out_h * out_w * frames} pixels, over MiniMax-M3's "
                f"{VIDEO_MAX_VOLUME}. Lower sampling.max_frames or sampling.fps.",
            )
        grid = (steps_of(frames), out_h // patch, out_w // patch)
        return VideoLayout((out_w, out_h), grid, math.prod(grid) // merge**2, merge)

    def time_texts(self, times_s: Sequence[float], sampling: Sampling) -> list[str]:
        """See `Family.time_texts`: `]<]1.2 seconds[>[` before each pair."""
        return [time_tag(time_s) for time_s in step_times(times_s)]

    def prompt(self, times_s: Sequence[float], layout: VideoLayout, sampling: Sampling) -> list[Span]:
        """See `Family.prompt`: nothing stands between or around the pairs."""
        return spans(self.time_texts(times_s, sampling), layout.tokens_per_step)

    def engine_metadata(self, clock: FrameClock, sampling: Sampling) -> dict[str, Any]:
        """See `Family.engine_metadata`. The rate is never 0, by which upstream's prompt would divide."""
        return vllm_metadata(clock)

    def processor_kwargs(self, sampling: Sampling, processor: Mapping[str, Any]) -> dict[str, Any]:
        """See `Family.processor_kwargs`."""
        return {"min_pixels": sampling.min_pixels, "max_pixels": sampling.max_pixels}
