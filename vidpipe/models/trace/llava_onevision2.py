"""LLaVA-OneVision-2's rules as golden vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from vidpipe.models.family import padded
from vidpipe.models.llava_onevision2 import LlavaOnevision2, frame_layout, repo_resize, time_tag
from vidpipe.models.llava_onevision2_patches import codec_runs, patch_positions, window_ends
from vidpipe.models.llava_onevision2_sampling import (
    DEFAULT_FPS,
    VLLM_MAX_FRAMES,
    native_count,
    native_indices,
    native_time_s,
    vllm_indices,
)
from vidpipe.models.trace.attempt import attempt

Values = dict[str, Any]
UNKNOWN_RATE_FPS = 1.0
"""vLLM's time base for a file that states no rate: silently wrong, so vidpipe reads the times instead."""


def vllm_time_tag(time_s: float) -> str:
    """A time's text as vLLM prints it, from a float32 copy (`_pack_timestamps`): one in thirty is a tenth off."""
    return time_tag(float(np.float32(time_s)))


def smart_nframes(given: Values) -> Values:
    """`ov2_smart_nframes`: indices, what OpenCV makes of repeated ones, times and both kinds of tags."""
    frames, fps = given["total_frames"], given["source_fps"]
    indices, error = attempt(
        lambda: vllm_indices(
            frames,
            fps,
            target_fps=given["target_fps"] if given["target_fps"] > 0 else DEFAULT_FPS,
            max_frames=given["num_frames"] if given["num_frames"] > 0 else VLLM_MAX_FRAMES,
        )
    )
    output = {"indices": indices, "error": error, "nframes": len(indices or [])}
    if not indices:
        return output
    decoded = sorted(set(indices))
    shown = padded(LlavaOnevision2(), decoded)
    times_s = [index / (fps if fps > 0 else UNKNOWN_RATE_FPS) for index in shown]
    return output | {
        "opencv_frames_indices": decoded,
        "do_sample_frames": len(decoded) == frames,
        "padded_num_frames": len(shown),
        "timestamps": times_s,
        "tags_hf_float64": [time_tag(time_s) for time_s in times_s],
        "tags_vllm_float32": [vllm_time_tag(time_s) for time_s in times_s],
    }


def native_sampling(given: Values) -> Values:
    """`ov2_repo_native_sampling`: the repository's own count, indices and times."""
    count = native_count(
        given["total_frames"],
        given["fps"],
        target_fps=given["target_fps"],
        num_frames=given["fixed_num_frames"],
        max_frames=given["max_frames"],
    )
    indices = native_indices(given["total_frames"], count)
    return {
        "target_frames": count,
        "indices": indices,
        "seconds": [native_time_s(index / given["fps"]) for index in indices],
    }


def patches(given: Values) -> Values:
    """`ov2_patch_positions`."""
    positions = patch_positions(tuple(given["grid_thw"]), given["spatial_merge_size"], given["frame_indices"])
    return {"patch_positions": positions.tolist()}


def windows(given: Values) -> Values:
    """`ov2_window_cu_seqlens`."""
    return {"cu_seqlens": window_ends([tuple(row) for row in given["grid_thw"]], given["frame_windows_size"])}


def timestamp_runs(given: Values) -> Values:
    """`ov2_codec_timestamp_runs`."""
    runs = codec_runs(given["t_values"], given["fps"], given["spatial_merge_size"])
    return {"runs": [list(run) for run in runs]}


def resize(given: Values) -> Values:
    """`smart_resize_ov2`: a frame as vLLM sees it, and the repository's own resize under two merge sizes."""
    height, width = given["height"], given["width"]
    bounds = {"min_pixels": given["min_pixels"], "max_pixels": given["max_pixels"]}
    repo = {
        f"repo_smart_resize_merge{merge}": list(
            repo_resize(height, width, factor=given["patch_size"] * merge, **bounds)
        )
        for merge in (3, 2)
    }
    patch, merge = given["patch_size"], given["merge_size"]
    frame, error = attempt(lambda: frame_layout(height, width, patch=patch, merge=merge, **bounds))
    if error is not None:
        return {"error": error, **repo}
    out_h, out_w, tokens = frame
    rows, columns = out_h // patch, out_w // patch
    return {
        "error": None,
        "resized_h": out_h,
        "resized_w": out_w,
        "grid_thw": [1, rows, columns],
        "tokens": tokens,
        "video_tokens": tokens * given["num_frames"],
        "video_grid_rows": [given["num_frames"], 1, rows, columns],
        **repo,
    }
