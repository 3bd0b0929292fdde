"""STAND-IN for LLaVA-OneVision-2's video processor on the model hub.

vLLM builds one and never calls it: it samples frames itself and shows them as images. The
sampling rule of the real one is `native_indices` in vidpipe.models.llava_onevision2_sampling.
"""

from __future__ import annotations

from typing import Any

import torch


class LlavaOnevision2VideoProcessor:
    """Holds what it is given."""

    def __init__(self, image_processor: Any = None, **settings: Any) -> None:
        self.image_processor, self.settings = image_processor, settings


def block_order(rows: int, columns: int, merge: int) -> torch.Tensor:
    """Patches of one frame, row by row, in the order of the image processor: block by block of `merge` x `merge`."""
    numbers = torch.arange(rows * columns).view(rows // merge, merge, columns // merge, merge)
    return numbers.transpose(1, 2).reshape(-1)


def frame_positions(frame: int, rows: int, columns: int, merge: int) -> torch.Tensor:
    """Position (t, h, w) of each patch of a frame, [rows * columns, 3], in that order."""
    row, column = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    positions = torch.stack([torch.full_like(row, frame), row, column], dim=-1).view(-1, 3)
    return positions[block_order(rows, columns, merge)]
