"""A sixth family, as docs/add_a_model.md describes it: every second frame at most, times in words before all frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from vidpipe.models.clock import FrameClock, vllm_metadata
from vidpipe.models.family import Abilities, Bounds, VideoLayout, bounds_of, fill, padded
from vidpipe.models.indices import spread_truncated
from vidpipe.models.prompt import Span
from vidpipe.models.resize import qwen2_vl_resize
from vidpipe.recipe.schema import Sampling

PATCH, MERGE = 8, 2
CLASS_BOUNDS = Bounds(16 * 16, 64 * 64)


class ToyVL:
    """The family's rules behind the common interface."""

    name: ClassVar[str] = "toy_vl"
    model_types: ClassVar[frozenset[str]] = frozenset({"toy_vl"})
    rules: ClassVar[Mapping[str, frozenset[str]]] = {"native": frozenset({"max_frames", "min_pixels", "max_pixels"})}
    abilities: ClassVar[Abilities] = Abilities("vllm", "ToyVLForConditionalGeneration")
    published: ClassVar[Mapping[str, Any]] = {"patch_size": PATCH, "merge_size": MERGE}
    frames_are_images: ClassVar[bool] = False
    frames_multiple: ClassVar[int] = 3
    least_frames: ClassVar[int] = 1
    times_in: ClassVar[Literal["prompt", "pixels"]] = "prompt"
    slot_word: ClassVar[str] = "<toy>"
    vision_word: ClassVar[str] = "<toy>"

    def complete(self, sampling: Sampling, processor: Mapping[str, Any]) -> Sampling:
        bounds = bounds_of(processor, CLASS_BOUNDS)
        return fill(self, sampling, {"max_frames": 9, "min_pixels": bounds.min_pixels, "max_pixels": bounds.max_pixels})

    def choose_frames(self, frames: int, fps: float, sampling: Sampling) -> list[int]:
        assert sampling.max_frames is not None
        return padded(self, spread_truncated(frames, min(sampling.max_frames, -(-frames // 2))))

    def layout(
        self, frames: int, width: int, height: int, sampling: Sampling, processor: Mapping[str, Any]
    ) -> VideoLayout:
        assert sampling.min_pixels is not None and sampling.max_pixels is not None
        out_h, out_w = qwen2_vl_resize(
            "Toy-VL",
            height,
            width,
            factor=PATCH * MERGE,
            min_pixels=sampling.min_pixels,
            max_pixels=sampling.max_pixels,
        )
        grid = (frames, out_h // PATCH, out_w // PATCH)
        return VideoLayout((out_w, out_h), grid, frames * grid[1] * grid[2] // MERGE**2, MERGE)

    def time_texts(self, times_s: Sequence[float], sampling: Sampling) -> list[str]:
        return [f"at {time_s:.2f} s" for time_s in times_s]

    def prompt(self, times_s: Sequence[float], layout: VideoLayout, sampling: Sampling) -> list[Span]:
        return [Span(", ".join(self.time_texts(times_s, sampling))), Span("<toy>", layout.vision_tokens)]

    def engine_metadata(self, clock: FrameClock, sampling: Sampling) -> dict[str, Any]:
        return vllm_metadata(clock)

    def processor_kwargs(self, sampling: Sampling, processor: Mapping[str, Any]) -> dict[str, Any]:
        return {"max_pixels": sampling.max_pixels}
