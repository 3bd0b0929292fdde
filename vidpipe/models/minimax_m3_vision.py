"""How MiniMax-M3 sizes frames, and which of them its vision tower lets see each other.

Sources: vLLM `transformers_utils/processors/minimax_m3.py` (`smart_resize`,
`_smart_resize_by_long_side`), `models/minimax_m3/common/vision_tower.py`
(`_apply_max_frames_limit`); transformers `models/minimax_m3_vl` (`smart_resize`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from vidpipe.models.resize import check_aspect_ratio, fit_area, qwen2_vl_resize, round_to

LEAST_SHORT_SIDE = 112


def smart_resize(
    height: int,
    width: int,
    *,
    factor: int,
    min_pixels: int,
    max_pixels: int,
    max_long_side: int | None = None,
) -> tuple[int, int]:
    """Height and width as vLLM's processor makes them: by area, or by the long side where that is set.

    By the long side: a longer one is shrunk to it; else a short side below 112 grows to
    112. The area bounds do not hold then.

    Raises:
        MediaError: `aspect_ratio`.
    """
    check_aspect_ratio("MiniMax-M3", height, width)
    if max_long_side is None:
        return fit_area(
            height,
            width,
            factor=factor,
            min_pixels=min_pixels,
            max_pixels=max_pixels,
            least=factor,
            least_when_shrunk=0,
        )
    scale = 1.0
    if max(height, width) > max_long_side:
        scale = max_long_side / max(height, width)
    elif min(height, width) < LEAST_SHORT_SIDE:
        scale = LEAST_SHORT_SIDE / min(height, width)
    return max(factor, round_to(height * scale, factor)), max(factor, round_to(width * scale, factor))


def hf_resize(height: int, width: int, *, factor: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
    """Height and width as transformers' processor makes them.

    Raises:
        MediaError: `aspect_ratio`.
    """
    return qwen2_vl_resize("MiniMax-M3", height, width, factor=factor, min_pixels=min_pixels, max_pixels=max_pixels)


def vision_segments(
    grids_thw: Sequence[tuple[int, int, int]], max_steps: int | None
) -> tuple[list[tuple[int, int, int]], list[int]]:
    """The grids that attention is kept within, and the borders between them in patches, from 0 (`cu_seqlens`).

    Args:
        grids_thw: Patches of each item before merging.
        max_steps: The model's `vision_segment_max_frames`, which counts temporal patches;
            None leaves every item whole. Time starts at 0 again in each segment.
    """
    segments = [
        (min(max_steps or steps, steps - first), rows, columns)
        for steps, rows, columns in grids_thw
        for first in range(0, steps, max_steps or steps)
    ]
    ends = [0]
    for segment in segments:
        ends.append(ends[-1] + math.prod(segment))
    return segments, ends
