"""Moss-VL: frames at 1 a second, each with its time and one token; the pixels reach the text by cross-attention.

Sources: the hub's `video_processing_moss_vl.py` (`calculate_num_frames`, `fetch_videos`,
`_allocate_max_frames_for_multiple_videos`, `smart_resize`) and `processing_moss_vl.py`
(`_calculate_timestamps`), known from their text only; what SGLang does with the result
is in `moss_vl_layout`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from vidpipe.errors import MediaError
from vidpipe.models.clock import FrameClock
from vidpipe.models.family import Abilities, Bounds, VideoLayout, bounds_of, fill
from vidpipe.models.indices import spread_truncated
from vidpipe.models.moss_vl_layout import encoder_length
from vidpipe.models.prompt import Span
from vidpipe.models.resize import ceil_to, check_aspect_ratio, floor_to, round_to
from vidpipe.recipe.schema import Sampling

PATCH, MERGE = 16, 2
START, IMAGE, END = "<|vision_start|>", "<|image_pad|>", "<|vision_end|>"
SLOT, SLOT_TOKEN = "<|video|>", "<|video_pad|>"
"""What the chat template writes for a video, and the token that the processor puts there before it tokenises."""
TIME_START, TIME_END = "<|time_start|>", "<|time_end|>"
DEFAULT_FPS = 1.0
ASSUMED_FPS = 24.0
MIN_FRAMES, MAX_FRAMES = 1, 256
COUNT_GRACE = 1e-6
CLASS_BOUNDS = Bounds(4_096, 16_777_216)
"""Pixels of one frame."""
VIDEO_MAX_VOLUME = 201_326_592
"""Pixels of all frames of a request together (`video_max_pixels`)."""


def frame_count(
    frames: int, duration_s: float, *, target_fps: float, min_frames: int, max_frames: int, min_pixels: int
) -> int:
    """Frames for a clip: by its length, within the bounds, and no more than the pixel budget has room for."""
    count = max(math.ceil(duration_s * target_fps - COUNT_GRACE), min_frames)
    return min(count, max_frames, VIDEO_MAX_VOLUME // min_pixels, frames)


def sample_indices(frames: int, count: int) -> list[int]:
    """`count` different indices from the first to the last frame, cut toward zero."""
    return sorted(set(spread_truncated(frames, count)))


def share_frames(durations_s: Sequence[float], max_frames: int) -> list[int]:
    """How the videos of one request share `max_frames`: one each, the rest by length, largest remainder first."""
    count, total_s = len(durations_s), sum(durations_s)
    if max_frames <= count:
        return [1] * count
    spare = max_frames - count
    shares = [spare * duration_s / total_s if total_s > 0 else spare / count for duration_s in durations_s]
    given = [1 + int(share) for share in shares]
    by_remainder = sorted(range(count), key=lambda i: int(shares[i]) - shares[i])
    for i in by_remainder[: max_frames - sum(given)]:
        given[i] += 1
    return given


def smart_resize(frames: int, height: int, width: int, *, factor: int, bounds: Bounds) -> tuple[int, int]:
    """Height and width: first down to a frame's bound, then down to the volume's, last up to a frame's lower bound.

    The last step wins, so a long clip may exceed the volume.

    Raises:
        MediaError: `aspect_ratio`, for a side below `factor` or over 200 times the other.
    """
    if min(height, width) < factor:
        raise MediaError(
            "aspect_ratio",
            f"frames of {width}x{height} pixels: Moss-VL takes no side below {factor} pixels. Enlarge the clip.",
        )
    check_aspect_ratio("Moss-VL", height, width)
    out_h, out_w = round_to(height, factor), round_to(width, factor)
    for count, most in ((1, bounds.max_pixels), (frames, VIDEO_MAX_VOLUME)):
        if count * out_h * out_w > most:
            beta = math.sqrt(count * height * width / most)
            out_h, out_w = max(factor, floor_to(height / beta, factor)), max(factor, floor_to(width / beta, factor))
    if out_h * out_w < bounds.min_pixels:
        beta = math.sqrt(bounds.min_pixels / (height * width))
        out_h, out_w = ceil_to(height * beta, factor), ceil_to(width * beta, factor)
    return out_h, out_w


class MossVL:
    """The family's rules behind the common interface."""

    name: ClassVar[str] = "moss_vl"
    model_types: ClassVar[frozenset[str]] = frozenset({"moss_vl"})
    rules: ClassVar[Mapping[str, frozenset[str]]] = {
        "hf": frozenset({"fps", "min_frames", "max_frames", "min_pixels", "max_pixels"})
    }
    abilities: ClassVar[Abilities] = Abilities(
        "sglang", "MossVLForConditionalGeneration", needs_remote_code=True, vision_beside_prompt=True
    )
    published: ClassVar[Mapping[str, Any]] = {
        "patch_size": PATCH,
        "merge_size": MERGE,
        "size": {"shortest_edge": CLASS_BOUNDS.min_pixels, "longest_edge": CLASS_BOUNDS.max_pixels},
    }
    frames_are_images: ClassVar[bool] = False
    frames_multiple: ClassVar[int] = 1
    least_frames: ClassVar[int] = 1
    times_in: ClassVar[Literal["prompt", "pixels"]] = "prompt"
    slot_word: ClassVar[str] = SLOT
    vision_word: ClassVar[str] = IMAGE

    def complete(self, sampling: Sampling, processor: Mapping[str, Any]) -> Sampling:
        """See `Family.complete`."""
        bounds = bounds_of(processor, CLASS_BOUNDS)
        defaults = {
            "fps": DEFAULT_FPS,
            "min_frames": processor.get("min_frames", MIN_FRAMES),
            "max_frames": processor.get("max_frames", MAX_FRAMES),
            "min_pixels": bounds.min_pixels,
            "max_pixels": bounds.max_pixels,
        }
        return fill(self, sampling, defaults)

    def choose_frames(self, frames: int, fps: float, sampling: Sampling) -> list[int]:
        """See `Family.choose_frames`."""
        assert sampling.min_frames is not None and sampling.max_frames is not None and sampling.min_pixels is not None
        count = frame_count(
            frames,
            frames / (fps if fps > 0 else ASSUMED_FPS),
            target_fps=sampling.fps or DEFAULT_FPS,
            min_frames=sampling.min_frames,
            max_frames=sampling.max_frames,
            min_pixels=sampling.min_pixels,
        )
        return sample_indices(frames, count)

    def layout(
        self, frames: int, width: int, height: int, sampling: Sampling, processor: Mapping[str, Any]
    ) -> VideoLayout:
        """See `Family.layout`. The tokens are slots of the encoder's cache, one separator a frame among them."""
        assert sampling.min_pixels is not None and sampling.max_pixels is not None
        patch, merge = processor.get("patch_size", PATCH), processor.get("merge_size", MERGE)
        bounds = Bounds(sampling.min_pixels, sampling.max_pixels)
        out_h, out_w = smart_resize(frames, height, width, factor=patch * merge, bounds=bounds)
        grid = (frames, out_h // patch, out_w // patch)
        return VideoLayout((out_w, out_h), grid, encoder_length([grid], merge), merge)

    def time_texts(self, times_s: Sequence[float], sampling: Sampling) -> list[str]:
        """See `Family.time_texts`: `1.2 seconds` between two control tokens before each frame."""
        return [f"{time_s:.1f} seconds" for time_s in times_s]

    def prompt(self, times_s: Sequence[float], layout: VideoLayout, sampling: Sampling) -> list[Span]:
        """See `Family.prompt`: one image token a frame, whatever its size."""
        frames = [
            span
            for text in self.time_texts(times_s, sampling)
            for span in (Span(TIME_START, 1), Span(text), Span(TIME_END, 1), Span(IMAGE, 1))
        ]
        return [Span(START, 1), *frames, Span(END, 1)]

    def engine_metadata(self, clock: FrameClock, sampling: Sampling) -> dict[str, Any]:
        """See `Family.engine_metadata`."""
        return {"fps": clock.rate, "total_num_frames": clock.total, "frames_indices": list(clock.ticks)}

    def processor_kwargs(self, sampling: Sampling, processor: Mapping[str, Any]) -> dict[str, Any]:
        """See `Family.processor_kwargs`."""
        return {"size": {"shortest_edge": sampling.min_pixels, "longest_edge": sampling.max_pixels}}
