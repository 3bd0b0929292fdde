"""Qwen3-VL's rules as golden vectors."""

from __future__ import annotations

from functools import partial
from typing import Any

from vidpipe.models.indices import spread_rounded
from vidpipe.models.positions import delta
from vidpipe.models.qwen3_vl import (
    ASSUMED_FPS,
    DEFAULT_FPS,
    MAX_FRAMES,
    MIN_FRAMES,
    pair_times,
    sample_indices,
    video_layout,
)
from vidpipe.models.qwen3_vl_prompt import Media, mrope_positions
from vidpipe.models.resize import qwen2_vl_resize
from vidpipe.models.trace import stub
from vidpipe.models.trace.attempt import attempt

Values = dict[str, Any]


def sampling(given: Values) -> Values:
    """`qwen3vl_sampling`: both upstreams' indices, and the times after the second sampling where that happens.

    A clip of which the loader keeps every frame is sampled once more by the Hugging Face
    processor at its own 2 a second; vidpipe forbids that in what it tells the engine.
    """
    frames, fps = given["total_frames"], given["source_fps"]
    bounds = {key: given["loader_kwargs"][key] for key in ("min_frames", "max_frames") if key in given["loader_kwargs"]}
    both = {
        rule: attempt(partial(sample_indices, frames, fps, target_fps=given["target_fps"], rule=rule, **bounds))
        for rule in ("vllm", "hf")
    }
    indices = both["vllm"][0]
    told_fps = fps if fps > 0 else ASSUMED_FPS
    again = len(indices) == frames
    if again:
        count = int(frames / told_fps * DEFAULT_FPS)
        shown = spread_rounded(frames, min(max(count, MIN_FRAMES), MAX_FRAMES, frames))
    else:
        shown = indices
    times, times_error = attempt(lambda: pair_times([index / told_fps for index in shown]))
    return {
        "indices": indices,
        "error": both["vllm"][1],
        "hf_indices": both["hf"][0],
        "hf_error": both["hf"][1],
        "metadata_fps": told_fps,
        "do_sample_frames": again,
        "timestamps": times,
        "timestamps_error": times_error,
        "strings": None if times is None else [f"<{time_s:.1f} seconds>" for time_s in times],
        "timestamps_no_resample": attempt(lambda: pair_times([index / told_fps for index in indices]))[0],
    }


def mrope(given: Values) -> Values:
    """`qwen3vl_mrope`: positions of a prompt with videos and images."""
    ids = stub.unrolled(given["token_ids_rle"])
    media = [
        Media(tuple(item["grid"]), offset, item["type"] == "image")
        for item, offset in zip(given["items"], given["offsets"], strict=True)
    ]
    positions = mrope_positions(ids, media, stub.control(given["ids"]), given["spatial_merge_size"])
    return {"positions": positions.tolist(), "delta": delta(positions, len(ids))}


def video_resize(given: Values) -> Values:
    """`smart_resize_qwen3vl_video`: size, grid and tokens of a clip, and whether it exceeds the budget all the same."""
    processor = {key: given[key] for key in ("patch_size", "merge_size", "temporal_patch_size", "cap_pixels_per_frame")}
    processor["size"] = {key: given[key] for key in ("shortest_edge", "longest_edge")}
    layout, error = attempt(lambda: video_layout(given["num_frames"], given["height"], given["width"], processor))
    if error is not None:
        return {"error": error}
    steps, rows, columns = layout.grid_thw
    width, height = layout.size_wh
    volume = steps * given["temporal_patch_size"] * height * width
    return {
        "error": None,
        "resized_h": height,
        "resized_w": width,
        "grid_thw": list(layout.grid_thw),
        "tokens_per_grid_t": layout.tokens_per_step,
        "tokens": layout.vision_tokens,
        "num_patches_upstream": steps * rows * columns,
        "padded_volume": volume,
        "over_budget": volume > given["longest_edge"],
    }


def image_resize(given: Values) -> Values:
    """`smart_resize_qwen3vl_image`: size, grid and tokens of an image."""
    size, error = attempt(
        lambda: qwen2_vl_resize(
            "Qwen3-VL",
            given["height"],
            given["width"],
            factor=given["factor"],
            min_pixels=given["min_pixels"],
            max_pixels=given["max_pixels"],
        )
    )
    if error is not None:
        return {"error": error}
    rows, columns = size[0] // given["patch_size"], size[1] // given["patch_size"]
    return {
        "error": None,
        "resized_h": size[0],
        "resized_w": size[1],
        "grid_thw": [1, rows, columns],
        "tokens": rows * columns // given["merge_size"] ** 2,
    }
