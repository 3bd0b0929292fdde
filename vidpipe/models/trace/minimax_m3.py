"""MiniMax-M3's rules as golden vectors."""

from __future__ import annotations

from typing import Any

from vidpipe.models.minimax_m3 import (
    CLASS_BOUNDS,
    IMAGE_MAX_AREA,
    VIDEO_MAX_VOLUME,
    interval_indices,
    spans,
    step_times,
    steps_of,
    time_tag,
)
from vidpipe.models.minimax_m3_vision import hf_resize, smart_resize, vision_segments
from vidpipe.models.trace.attempt import attempt

Values = dict[str, Any]
PATCH, MERGE = 14, 2
PROMPTS_UP_TO = 40
"""Frames of the longest clip for which the vectors hold the whole prompt."""


def sampling(given: Values) -> Values:
    """`minimax_m3_sampling`: indices, and the prompt with one token a pair.

    Upstream divides by the source's rate, so a file without one has no prompt there.
    """
    fps = given["source_fps"]
    indices, error = attempt(lambda: interval_indices(given["total_frames"], fps, target_fps=given["target_fps"]))
    if not indices:
        return {"indices": indices, "error": error}
    times, prompt_error = attempt(lambda: step_times([index / fps for index in indices]))
    output = {"indices": indices, "error": error, "grid_t": steps_of(len(indices))}
    prompt = None
    if times is not None and len(indices) <= PROMPTS_UP_TO:
        prompt = "".join(span.text * (span.times or 1) for span in spans([time_tag(time_s) for time_s in times], 1))
    output |= {"prompt_one_token_per_frame": prompt, "prompt_error": prompt_error}
    return output if times is None else output | {"timestamps": [f"{time_s:.1f}" for time_s in times]}


def segments(given: Values) -> Values:
    """`minimax_m3_vision_segments`."""
    grids, ends = vision_segments([tuple(grid) for grid in given["grid_thw"]], given["vision_segment_max_frames"])
    return {"limited_grid": [list(grid) for grid in grids], "cu_seqlens": ends}


def resize(given: Values) -> Values:
    """`smart_resize_minimax_m3`: by area (both upstreams) or by the long side (vLLM only)."""
    is_video, long_side = given["modality"] == "video", given["max_long_side_pixel"]
    shape = (given["height"], given["width"])
    bounds = {"factor": PATCH * MERGE, "min_pixels": CLASS_BOUNDS.min_pixels, "max_pixels": given["max_pixels"]}
    size, error = attempt(lambda: smart_resize(*shape, **bounds, max_long_side=long_side))
    frames = given["num_frames"] if is_video else 1
    output: Values = {"error": error}
    if size is not None:
        over = long_side is not None and size[0] * size[1] * frames > (VIDEO_MAX_VOLUME if is_video else IMAGE_MAX_AREA)
        if over and not is_video:
            return {"error": "ValueError"}
        grid = [steps_of(frames), size[0] // PATCH, size[1] // PATCH]
        output |= {"error_volume": True} if over else {}
        output |= {
            "resized_h": size[0],
            "resized_w": size[1],
            "grid_thw": grid,
            "tokens": grid[0] * grid[1] * grid[2] // MERGE**2,
        }
    if long_side is None:
        found, hf_error = attempt(lambda: hf_resize(*shape, **bounds))
        output |= {"hf_resized": found and list(found), "hf_error": hf_error}
    return output
