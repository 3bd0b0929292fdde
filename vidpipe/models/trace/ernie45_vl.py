"""ERNIE-4.5-VL's rules as golden vectors."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from vidpipe.models.ernie45_vl import TEMPORAL, VLLM_MAX_FRAMES, drawn_time
from vidpipe.models.ernie45_vl_resize import hf_resize, vllm_resize
from vidpipe.models.ernie45_vl_sampling import hf_indices, uniform_indices
from vidpipe.models.ernie45_vl_tokens import mrope_positions, temporal_pairs
from vidpipe.models.positions import delta
from vidpipe.models.trace.attempt import attempt
from vidpipe.models.trace.stub import unrolled

Values = dict[str, Any]


def sampling(given: Values) -> Values:
    """`ernie_sampling`: the processor's own indices, those of vLLM's loader, and the texts drawn for both."""
    frames, fps = given["total_frames"], given["source_fps"]
    indices, error = attempt(lambda: hf_indices(frames, fps, target_fps=given["fps"], num_frames=given["num_frames"]))
    loaded, loaded_error = attempt(lambda: uniform_indices(frames, fps, target_fps=None, max_frames=VLLM_MAX_FRAMES))
    output: Values = {
        "hf_indices": indices,
        "hf_error": error,
        "vllm_default_indices": loaded,
        "vllm_error": loaded_error,
    }
    if fps > 0:
        output |= {
            "vllm_do_sample_frames": len(loaded) == frames,
            "vllm_rendered": [drawn_time(index / fps) for index in loaded],
        }
        if indices is not None:
            output |= {"hf_rendered": [drawn_time(index / fps) for index in indices], "hf_rendered_error": None}
    return output


def timestamp_text(given: Values) -> Values:
    """`ernie_timestamp_text`."""
    return {"text": drawn_time(given["seconds"])}


def mrope(given: Values) -> Values:
    """`ernie_mrope`: positions of a prompt with videos and images."""
    ids = unrolled(given["token_ids_rle"])
    media = [
        (offset, tuple(item["grid"]), item["type"] == "video")
        for item, offset in zip(given["items"], given["offsets"], strict=True)
    ]
    positions = mrope_positions(media, len(ids), given.get("spatial_conv_size", 2))
    return {"positions": positions.tolist(), "delta": delta(positions, len(ids))}


def pairs(given: Values) -> Values:
    """`ernie_temporal_pairs`; upstream meets an odd number of frames as a tensor size error."""
    grids = [tuple(grid) for grid in given["grid_thw"]]
    found, error = attempt(lambda: temporal_pairs(grids, given["spatial_conv_size"]))
    return {"pairs": found and [list(pair) for pair in found], "error": error and "RuntimeError"}


def resize(given: Values) -> Values:
    """`smart_resize_ernie`: the sizes of vLLM and of transformers, which differ beyond 200:1."""
    patch, merge = given["patch_size"], given["merge_size"]
    output: Values = {}
    sizes: Values = {}
    for name, rule in (("vllm", vllm_resize), ("hf", hf_resize)):
        size, error = attempt(
            partial(
                rule,
                given["height"],
                given["width"],
                factor=patch * merge,
                min_pixels=given["min_pixels"],
                max_pixels=given["max_pixels"],
            )
        )
        sizes[name] = size
        output |= {f"{name}_error": error, f"{name}_resized": size and list(size)}
    for name, size in sizes.items():
        if size is not None:
            frames = given["num_frames"] + -given["num_frames"] % TEMPORAL
            grid = [frames, size[0] // patch, size[1] // patch]
            output |= {
                f"{name}_video_grid_thw": grid,
                f"{name}_video_tokens": math.prod(grid) // (TEMPORAL * merge**2),
                f"{name}_image_tokens": grid[1] * grid[2] // merge**2,
            }
    return output
