"""STAND-IN for Moss-VL's video processor on the model hub: frames of files to patches.

Like the real one it gets its frames from `fetch_videos`, by path, and goes by times that this leaves at the metadata.
The resize rule is `smart_resize` in vidpipe.models.moss_vl, written out for what the tests show it.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torchvision.transforms.v2 import functional
from transformers import BatchFeature
from transformers.video_processing_utils import BaseVideoProcessor


class MossVLVideoProcessor(BaseVideoProcessor):
    """Patches of 16 x 16, one frame each, in blocks of 2 x 2."""

    image_mean = image_std = [0.5, 0.5, 0.5]  # noqa: RUF012
    size = {"shortest_edge": 4096, "longest_edge": 16777216}  # noqa: RUF012
    patch_size, temporal_patch_size, merge_size = 16, 1, 2
    video_max_pixels = 201326592

    def fetch_videos(self, videos: list[str], **options: Any) -> tuple[list[torch.Tensor], list[Any]]:
        """Frames [frames, 3, height, width] of each file, and metadata; vidpipe stands in for this."""
        raise ValueError(f"this stand-in opens no files: {videos}")

    def __call__(self, videos: list[str], size: dict[str, int] | None = None, **options: Any) -> BatchFeature:
        """Patches and grids of all videos, and their metadata."""
        frames, metadata = self.fetch_videos(videos)
        bounds = size or self.size
        made = [self._patches(video, bounds) for video in frames]
        return BatchFeature({
            "pixel_values_videos": torch.cat([patches for patches, _ in made]),
            "video_grid_thw": torch.tensor([grid for _, grid in made]),
            "video_metadata": metadata,
        })  # fmt: skip

    def _patches(self, video: torch.Tensor, bounds: dict[str, int]) -> tuple[torch.Tensor, list[int]]:
        frames, _, height, width = video.shape
        height, width = self._size(frames, height, width, bounds)
        resized = functional.resize(video, [height, width], functional.InterpolationMode.BICUBIC, antialias=True)
        pixels = resized.to(torch.float32) / 127.5 - 1
        patch, merge = self.patch_size, self.merge_size
        rows, columns = height // patch, width // patch
        blocks = pixels.reshape(frames, 3, rows // merge, merge, patch, columns // merge, merge, patch)
        return blocks.permute(0, 2, 5, 3, 6, 1, 4, 7).reshape(frames * rows * columns, -1), [frames, rows, columns]

    def _size(self, frames: int, height: int, width: int, bounds: dict[str, int]) -> tuple[int, int]:
        factor = self.patch_size * self.merge_size
        sides = [round(height / factor) * factor, round(width / factor) * factor]
        for count, most in ((1, bounds["longest_edge"]), (frames, self.video_max_pixels)):
            if count * sides[0] * sides[1] > most:
                beta = math.sqrt(count * height * width / most)
                sides = [max(factor, math.floor(side / beta / factor) * factor) for side in (height, width)]
        if sides[0] * sides[1] < bounds["shortest_edge"]:
            beta = math.sqrt(bounds["shortest_edge"] / (height * width))
            sides = [math.ceil(side * beta / factor) * factor for side in (height, width)]
        return sides[0], sides[1]
