"""STAND-IN for LLaVA-OneVision-2's codec code on the model hub.

It runs the program that the real one runs (`cv-preinfer` of PyPI's codec-video-prep), or the
one that `CV_PREINFER_BIN` names, and reads what that leaves in a folder: canvases, for each
patch the frame and place that it comes from, and the file's rate.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from .video_processing_llava_onevision2 import block_order


@dataclass(frozen=True)
class CodecConfig:
    """How many canvases, from how many frames, and how large."""

    target_canvas: int = 32
    group_size: int = 32
    images_per_group: int = 4
    patch: int = 14
    max_pixels: int = 150_000
    min_group_frames: int = 8
    max_group_frames: int = 64


def process_codec_video(path: str, config: CodecConfig) -> dict[str, Any]:
    """Canvases, [patches, 3] source positions row by row, and rate of a video.

    Raises:
        RuntimeError: the program refuses the video.
    """
    with tempfile.TemporaryDirectory() as out:
        frames = config.target_canvas // config.images_per_group * config.group_size
        options = {
            "video": path, "out_dir": out, "num_sampled_frames": frames, "grouping_mode": "readiness",
            "group_size": config.group_size, "images_per_group": config.images_per_group, "patch": config.patch,
            "max_pixels": config.max_pixels, "readiness_sum_threshold": 0,
            "min_group_frames": config.min_group_frames, "max_group_frames": config.max_group_frames,
        }  # fmt: skip
        program = os.environ.get("CV_PREINFER_BIN", "cv-preinfer")
        words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
        run = subprocess.run([program, *words], capture_output=True, text=True, check=False)
        if run.returncode:
            raise RuntimeError(f"cv-preinfer failed ({run.returncode}): {(run.stderr or run.stdout)[-500:]}")
        folder = Path(out)
        meta = json.loads((folder / "meta.json").read_text())
        images = [Image.open(file).convert("RGB") for file in sorted(folder.glob("canvas_*.jpg"))]
        positions = np.load(folder / "src_patch_position.npy")
    return {"images": images, "src_positions": positions, "fps": float(meta.get("fps") or 30.0)}


def canvases_and_positions(made: dict[str, Any], image_processor: Any) -> tuple[Any, torch.Tensor]:
    """Image tensors of the canvases as they are, unresized, and positions in the image processor's order.

    Canvases all of whose patches come from no frame (below 0) are filling and left out.

    Raises:
        RuntimeError: none is left.
    """
    images = made["images"]
    positions = torch.as_tensor(made["src_positions"]).view(len(images), -1, 3)
    used = [number for number in range(len(images)) if int(positions[number, :, 0].max()) >= 0]
    if not used:
        raise RuntimeError("the codec made no canvas")
    images, positions = [images[number] for number in used], positions[used]
    pixels = [image.width * image.height for image in images]
    size = {"shortest_edge": min(pixels), "longest_edge": max(pixels)}
    features = image_processor(images=images, size=size, return_tensors="pt")
    ordered = [
        canvas[block_order(rows, columns, image_processor.merge_size)]
        for canvas, (_, rows, columns) in zip(positions, features["image_grid_thw"].tolist(), strict=True)
    ]
    return features, torch.cat(ordered)


def runs_text(source_frames: list[int], fps: float, merge: int) -> str:
    """What the real processor writes for a video: a time and its patches' tokens, run by run, a line each."""
    lines = []
    for frame, patches in groupby(source_frames):
        tokens = sum(1 for _ in patches) // merge**2
        if frame >= 0 and tokens:
            lines.append(f"<{frame / fps:.1f} seconds><|vision_start|>{'<|image_pad|>' * tokens}<|vision_end|>\n")
    return "".join(lines)
