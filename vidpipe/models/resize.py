"""Resize arithmetic that the families share: sides in multiples of a factor, area between two bounds."""

from __future__ import annotations

import math

from vidpipe.errors import MediaError

MAX_ASPECT_RATIO = 200


def round_to(value: float, factor: int) -> int:
    """The multiple of `factor` nearest to `value`, ties to the even multiple."""
    return round(value / factor) * factor


def floor_to(value: float, factor: int) -> int:
    """The largest multiple of `factor` that is not above `value`."""
    return math.floor(value / factor) * factor


def ceil_to(value: float, factor: int) -> int:
    """The smallest multiple of `factor` that is not below `value`."""
    return math.ceil(value / factor) * factor


def check_aspect_ratio(family: str, height: int, width: int) -> None:
    """Refuse what upstream's processors refuse.

    Raises:
        MediaError: `aspect_ratio`, when one side is over 200 times the other.
    """
    if max(height, width) / min(height, width) > MAX_ASPECT_RATIO:
        raise MediaError(
            "aspect_ratio",
            f"frames of {width}x{height} pixels: {family} takes no side over {MAX_ASPECT_RATIO} times the other. "
            "Crop or pad the clip.",
        )


def fit_area(
    height: int, width: int, *, factor: int, min_pixels: int, max_pixels: int, least: int, least_when_shrunk: int
) -> tuple[int, int]:
    """Height and width, multiples of `factor`, whose product is brought between the bounds (may miss them a little).

    The rule that Qwen2-VL began and the other families copied with small differences.

    Args:
        height: Pixels.
        width: Pixels.
        factor: Patch size times merge size.
        min_pixels: Area to grow to.
        max_pixels: Area to shrink to.
        least: Lower bound of a side after rounding; 0 lets a side vanish.
        least_when_shrunk: Lower bound of a side after shrinking.
    """
    out_h, out_w = max(least, round_to(height, factor)), max(least, round_to(width, factor))
    if out_h * out_w > max_pixels:
        beta = math.sqrt(height * width / max_pixels)
        return max(least_when_shrunk, floor_to(height / beta, factor)), max(
            least_when_shrunk, floor_to(width / beta, factor)
        )
    if out_h * out_w < min_pixels:
        beta = math.sqrt(min_pixels / (height * width))
        return ceil_to(height * beta, factor), ceil_to(width * beta, factor)
    return out_h, out_w


def qwen2_vl_resize(
    family: str, height: int, width: int, *, factor: int, min_pixels: int, max_pixels: int
) -> tuple[int, int]:
    """Height and width of one image after transformers' `qwen2_vl` `smart_resize` (Qwen images, OV2 frames, ERNIE).

    Raises:
        MediaError: `aspect_ratio`.
    """
    check_aspect_ratio(family, height, width)
    return fit_area(
        height,
        width,
        factor=factor,
        min_pixels=min_pixels,
        max_pixels=max_pixels,
        least=0,
        least_when_shrunk=factor,
    )
