"""LLaVA-OneVision-2's other way to see a video: canvases of the patches on which the video's codec spent its bits.

The checkpoint's own code (`codec_video_processing_llava_onevision2.py`) makes the canvases
with the program `cv-preinfer`; a canvas holds patches of several frames, and the prompt
says the time of each run of patches from one frame. Stated here: the settings that it
takes, what a clip will cost, and the prompt. Source of the prompt: vLLM
`model_executor/models/llava_onevision2.py` (`get_video_replacement`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vidpipe.errors import CapabilityError
from vidpipe.models.family import OPTIONS, Family
from vidpipe.models.prompt import Span
from vidpipe.recipe.schema import Sampling

PUBLISHED = {"target_canvas": 32, "images_per_group": 4, "max_pixels": 150_000}
"""The key `codec` of the published checkpoint's `preprocessor_config.json`."""
CODECS = ("h264", "hevc", "vp9")
"""FFmpeg's names of the codecs whose bits `cv-preinfer` can count."""


def complete_codec(family: Family, sampling: Sampling, processor: Mapping[str, Any]) -> Sampling:
    """`sampling` with the canvases' number and size filled in, and the rule for clips that are shown as frames.

    Args:
        family: The family, whose rules hold for those clips.
        sampling: Under `video_backend: codec`.
        processor: The settings of the checkpoint's image processor.

    Raises:
        CapabilityError: an option that would be ignored, or a number that the checkpoint's code refuses.
    """
    ignored = [key for key in ("rule", *OPTIONS) if key != "max_pixels" and getattr(sampling, key) is not None]
    if ignored and sampling.codec_fallback == "fail":
        raise CapabilityError(
            f"sampling.{ignored[0]}: under video_backend codec the codec chooses what is shown; canvases and "
            "max_pixels say how much. Remove the key, or set sampling.codec_fallback: frames, which shows clips that "
            "the codec cannot take by that rule."
        )
    settings = {**PUBLISHED, **(processor.get("codec") or {})}
    canvases, group = sampling.canvases or settings["target_canvas"], settings["images_per_group"]
    if canvases % group:
        raise CapabilityError(
            f"sampling.canvases: the checkpoint makes {group} at a time, found {canvases}. Give a multiple of {group}."
        )
    chosen = {"canvases": canvases, "max_pixels": sampling.max_pixels or settings["max_pixels"]}
    if sampling.codec_fallback == "fail":
        return sampling.model_copy(update=chosen)
    frames = family.complete(as_frames(sampling.model_copy(update=chosen)), processor)
    return frames.model_copy(update={"video_backend": "codec", **chosen})


def as_frames(sampling: Sampling) -> Sampling:
    """`sampling` for a clip that is shown as frames after all."""
    return sampling.model_copy(update={"video_backend": "frames", "canvases": None})


def processor_kwargs(sampling: Sampling) -> dict[str, Any]:
    """Keyword arguments of the checkpoint's processor that make so many canvases, and so large."""
    return {"max_pixels": sampling.max_pixels, "codec_config": {"target_canvas": sampling.canvases}}


def most_tokens(sampling: Sampling, cell: int) -> int:
    """Upper bound of a clip's vision tokens, for cells of `cell` x `cell` pixels."""
    assert sampling.canvases is not None and sampling.max_pixels is not None
    return sampling.canvases * (sampling.max_pixels // cell**2)


def canvas_prompt(runs: Sequence[tuple[str, int]], start: str, vision: str, end: str) -> list[Span]:
    """What stands in the prompt for a video's canvases.

    Args:
        runs: Time text and tokens of each run of patches from one frame, in order.
        start: Control word before a run's tokens.
        vision: Control word that each of them is.
        end: Control word behind them.
    """
    return [
        span
        for text, tokens in runs
        for span in (Span(text), Span(start, 1), Span(vision, tokens), Span(end, 1), Span("\n"))
    ]
