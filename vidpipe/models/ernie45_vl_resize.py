"""How ERNIE-4.5-VL sizes frames: vLLM and transformers differ beyond 200:1.

Sources: vLLM `model_executor/models/ernie45_vl.py` and transformers
`models/ernie4_5_vl_moe`, `smart_resize`.
"""

from __future__ import annotations

from vidpipe.errors import MediaError
from vidpipe.models.resize import MAX_ASPECT_RATIO, fit_area, floor_to, qwen2_vl_resize, round_to


def vllm_resize(height: int, width: int, *, factor: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
    """Height and width as vLLM counts them: beyond 200:1 it goes on with a shape of 200:1.

    Raises:
        MediaError: `aspect_ratio`, when no size within the bounds is found.
    """
    shape = (height, width)
    if max(shape) / min(shape) > MAX_ASPECT_RATIO:
        short = max(factor, round_to(min(shape), factor))
        long = floor_to(short * MAX_ASPECT_RATIO, factor)
        shape = (long, short) if height > width else (short, long)
    out_h, out_w = fit_area(
        *shape, factor=factor, min_pixels=min_pixels, max_pixels=max_pixels, least=factor, least_when_shrunk=0
    )
    if not min_pixels <= out_h * out_w <= max_pixels:
        raise MediaError(
            "aspect_ratio",
            f"frames of {width}x{height} pixels: ERNIE-4.5-VL would make {out_w}x{out_h} of them, outside its bounds "
            f"of {min_pixels} to {max_pixels} pixels. Crop or pad it, or widen sampling.min_pixels and max_pixels.",
        )
    return out_h, out_w


def hf_resize(height: int, width: int, *, factor: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
    """Height and width as transformers' processor makes them.

    Raises:
        MediaError: `aspect_ratio`.
    """
    return qwen2_vl_resize("ERNIE-4.5-VL", height, width, factor=factor, min_pixels=min_pixels, max_pixels=max_pixels)
