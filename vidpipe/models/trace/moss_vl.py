"""Moss-VL's rules as golden vectors."""

from __future__ import annotations

from typing import Any

from vidpipe.errors import MediaError
from vidpipe.models import moss_vl, moss_vl_layout
from vidpipe.models.positions import delta

Values = dict[str, Any]


def layout(given: Values) -> Values:
    """`moss_vl_layout`: the encoder's cache, positions, and what each query row of a chunk sees."""
    ids, image, merge = given["input_ids"], given["image_token_id"], given["spatial_merge_size"]
    grids = [tuple(grid) for grid in given["grid_thw"]]
    slots = moss_vl_layout.media_slots(grids, merge)
    length = moss_vl_layout.encoder_length(grids, merge)
    visible = moss_vl_layout.visible_frames(ids, image)
    positions = moss_vl_layout.position_metadata(ids, image, grids, merge)
    chunk = slice(given["extend_prefix_len"], given["extend_prefix_len"] + given["extend_seq_len"])
    media = [
        {
            "start": part.start,
            "end": part.end,
            "length": part.end - part.start,
            "num_frames": part.frames,
            "grid_h": part.grid_h,
            "grid_w": part.grid_w,
            "vision_tokens_per_frame": part.tokens_per_frame,
            "has_separator": True,
        }
        for part in slots
    ]
    return {
        "encoder_len": length,
        "vision_token_info": [{"medias": media, "total_length": length, "pad_start": length, "pad_end": length}],
        "visible_frame_counts": visible,
        "text_positions": positions.text.tolist(),
        "delta": [delta(positions.text, len(ids))],
        "vision_positions": positions.vision.tolist(),
        "separator_layout": moss_vl_layout.with_separators(grids, merge),
        "cross_attention_mask_rows_visible": moss_vl_layout.visible_slots(visible[chunk], grids, merge),
    }


def sampling(given: Values) -> Values:
    """`moss_hf_sampling`: count, indices and the text around each frame."""
    count = moss_vl.frame_count(
        given["total_frames"],
        given["duration"],
        target_fps=given["video_fps"],
        min_frames=given["min_frames"],
        max_frames=given["max_frames"],
        min_pixels=moss_vl.CLASS_BOUNDS.min_pixels,
    )
    indices = moss_vl.sample_indices(given["total_frames"], count)
    fps = given["source_fps"] or moss_vl.ASSUMED_FPS
    before, behind = moss_vl.TIME_START, moss_vl.TIME_END + moss_vl.IMAGE
    return {
        "num_frames": count,
        "indices": indices,
        "strings": [f"{before}{index / fps:.1f} seconds{behind}" for index in indices],
    }


def resize(given: Values) -> Values:
    """`moss_hf_resize`; its errors are words, not types, since the vectors are transcriptions."""
    frames, height, width = given["num_frames"], given["height"], given["width"]
    factor = moss_vl.PATCH * moss_vl.MERGE
    try:
        out_h, out_w = moss_vl.smart_resize(frames, height, width, factor=factor, bounds=moss_vl.CLASS_BOUNDS)
    except MediaError:
        return {"error": "too small" if min(height, width) < factor else "aspect"}
    grid = (frames, out_h // moss_vl.PATCH, out_w // moss_vl.PATCH)
    length = moss_vl_layout.encoder_length([grid], moss_vl.MERGE)
    return {
        "error": None,
        "resized_h": out_h,
        "resized_w": out_w,
        "grid_thw": list(grid),
        "vision_tokens": length - frames,
        "encoder_len": length,
    }


def frame_allocation(given: Values) -> Values:
    """`moss_hf_frame_allocation`."""
    return {"allocation": moss_vl.share_frames(given["durations"], given["max_frames"])}
