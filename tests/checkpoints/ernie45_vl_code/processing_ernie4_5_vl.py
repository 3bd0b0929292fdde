"""STAND-IN for the file of this name on the model hub: what vLLM calls and reads, and no more.

Like the hub's, as far as that is known: an array of frames is taken for frames that have their times drawn
already (`process_vision_info` there hands those over), only a pair of frames and metadata is drawn on
(vllm-project/vllm#31274), and `video_min_pixels` and `video_max_pixels` are settings of the processor. Unlike the
hub's, times are drawn in Pillow's own font.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from transformers import BatchFeature, ProcessorMixin

IMAGE, VIDEO, PLACEHOLDER = "<|image@placeholder|>", "<|video@placeholder|>", "<|IMAGE_PLACEHOLDER|>"
SETTINGS = {
    "image_min_pixels": 4 * 28 * 28,
    "image_max_pixels": 6177 * 28 * 28,
    "video_min_pixels": 299 * 28 * 28,
    "video_max_pixels": 1196 * 28 * 28,
}


def fit(height: int, width: int, factor: int, low: int, high: int) -> tuple[int, int]:
    """Sides in multiples of `factor` within an area of `low` to `high` pixels."""
    if max(height, width) > 200 * min(height, width):
        raise ValueError(f"frames of {width}x{height} are too narrow")
    out = [round(height / factor) * factor, round(width / factor) * factor]
    if math.prod(out) > high:
        shrink = math.sqrt(height * width / high)
        out = [max(factor, math.floor(side / shrink / factor) * factor) for side in (height, width)]
    elif math.prod(out) < low:
        grow = math.sqrt(low / (height * width))
        out = [math.ceil(side * grow / factor) * factor for side in (height, width)]
    return out[0], out[1]


def drawn(frames: np.ndarray, metadata: Mapping[str, Any]) -> np.ndarray:
    """The frames with their times drawn in the upper left corner."""
    images = []
    for frame, index in zip(frames, metadata["frames_indices"], strict=True):
        image, time_s = Image.fromarray(frame), index / metadata["fps"]
        text = f"time: {int(time_s // 3600):02d}:{int(time_s % 3600 // 60):02d}:{time_s % 60:05.02f}"
        font = ImageFont.load_default(max(1, min(image.size) // 10))
        ImageDraw.Draw(image).text((0, 0), text, font=font, fill=(0, 0, 0), stroke_width=1, stroke_fill=(255,) * 3)
        images.append(np.asarray(image))
    return np.stack(images)


class Ernie4_5_VLImageProcessor:  # noqa: N801 - the hub's name
    model_input_names = ("pixel_values", "image_grid_thw")

    def __init__(
        self, min_pixels: int = 56 * 56, max_pixels: int = 6177 * 28 * 28, patch_size: int = 14, merge_size: int = 2
    ) -> None:
        self.patch_size, self.merge_size = patch_size, merge_size
        self.size = {"min_pixels": min_pixels, "max_pixels": max_pixels}  # vLLM's names for remote code
        self.image_mean = [0.48145466, 0.4578275, 0.40821073]
        self.image_std = [0.26862954, 0.26130258, 0.27577711]
        self.rescale_factor = 1 / 255

    @classmethod
    def from_pretrained(cls, path: str, **_: Any) -> Ernie4_5_VLImageProcessor:
        settings = json.loads((Path(path) / "preprocessor_config.json").read_text(encoding="utf-8"))
        known = ("min_pixels", "max_pixels", "patch_size", "merge_size")
        return cls(**{key: settings[key] for key in known if key in settings})

    def patches(self, frames: np.ndarray, low: int, high: int) -> tuple[torch.Tensor, tuple[int, int, int]]:
        """Patches [t * h * w, 3 * 14 * 14] of uint8 frames [t, height, width, 3], in blocks of 2 x 2, and t, h, w.

        Not normalised: vLLM does that.
        """
        patch, merge = self.patch_size, self.merge_size
        height, width = fit(*frames.shape[1:3], patch * merge, low, high)
        size = (width, height)
        images = [np.asarray(Image.fromarray(frame).resize(size, Image.Resampling.BICUBIC)) for frame in frames]
        t, h, w = len(images), height // patch, width // patch
        blocks = np.stack(images).reshape(t, h // merge, merge, patch, w // merge, merge, patch, 3)
        flat = blocks.transpose(0, 1, 4, 2, 5, 7, 3, 6).reshape(t * h * w, 3 * patch * patch)
        return torch.from_numpy(np.ascontiguousarray(flat)), (t, h, w)


class Ernie4_5_VLProcessor(ProcessorMixin):  # noqa: N801 - the hub's name
    attributes = ("image_processor", "tokenizer")
    supports_video_metadata = True

    def __init__(self, image_processor: Any = None, tokenizer: Any = None, **settings: Any) -> None:
        self.image_processor, self.tokenizer = image_processor, tokenizer
        self.chat_template = getattr(tokenizer, "chat_template", None)
        self.spatial_conv_size = self.temporal_conv_size = 2
        for name, value in SETTINGS.items():
            setattr(self, name, settings.get(name, value))

    @classmethod
    def from_pretrained(cls, path: str, tokenizer: Any = None, **settings: Any) -> Ernie4_5_VLProcessor:
        from transformers import AutoTokenizer

        tokenizer = tokenizer or AutoTokenizer.from_pretrained(
            path, trust_remote_code=settings.get("trust_remote_code")
        )
        return cls(Ernie4_5_VLImageProcessor.from_pretrained(path), tokenizer, **settings)

    def __call__(
        self, text: str | list[str], images: Sequence[Any] = (), videos: Sequence[Any] = (), **_: Any
    ) -> BatchFeature:
        whole = text if isinstance(text, str) else text[0]
        pixels, grids = [], []
        for image in images or ():
            frames = np.asarray(image.convert("RGB") if hasattr(image, "convert") else image)[None]
            made, grid = self.image_processor.patches(frames, self.image_min_pixels, self.image_max_pixels)
            whole = whole.replace(IMAGE, PLACEHOLDER * (math.prod(grid) // self.spatial_conv_size**2), 1)
            pixels.append(made)
            grids.append(grid)
        for video in videos or ():
            frames = drawn(np.asarray(video[0]), video[1]) if isinstance(video, tuple) else np.asarray(video)
            made, grid = self.image_processor.patches(frames, self.video_min_pixels, self.video_max_pixels)
            tokens = math.prod(grid) // self.spatial_conv_size**2 // self.temporal_conv_size
            whole = whole.replace(VIDEO, PLACEHOLDER * tokens, 1)
            pixels.append(made)
            grids.append(grid)
        made = dict(self.tokenizer([whole], return_tensors="pt"))
        made["images"] = torch.cat(pixels) if pixels else None
        made["grid_thw"] = torch.tensor(grids) if grids else None
        return BatchFeature(made)
