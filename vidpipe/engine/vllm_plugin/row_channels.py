"""What rides behind the embeddings of a pruned video: for each row its position, and its place in the video.

Upstream lets the positions ride as they are, in the embeddings' dtype: bfloat16 holds whole
numbers to 256 only and rounds the others. Here a number rides as three base-256 digits, which
bfloat16 and float16 both hold exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from vidpipe.engine.vllm_plugin.pruned_positions import Piece

DIGITS = (65_536, 256, 1)
NUMBERS = 5
"""Time, height, width, row in the video, tokens of its first time text."""
CHANNELS = NUMBERS * len(DIGITS) + 1
"""The last one tells rows of a video (1) from rows of an image (0)."""


def channels_of(local: Any, is_vision_start: Any) -> Any:
    """Channels [rows, `CHANNELS`], int64, on the device of `local`; no value leaves it.

    Args:
        local: [rows, 3] int64: positions counted from the video's start.
        is_vision_start: [rows] bool.
    """
    rows = len(local)
    row = torch.arange(rows, device=local.device).unsqueeze(1)
    lead = is_vision_start.long().argmax().expand(rows, 1)
    numbers = torch.cat([local, row, lead], dim=1)
    digits = [numbers // digit % 256 for digit in DIGITS]
    return torch.cat([*digits, torch.ones_like(row)], dim=1)


def piece_of(channels: Any) -> Piece | None:
    """What the rows [rows, `CHANNELS`] of any float dtype say; None for those of an image. Waits for the device."""
    if not len(channels):
        return None
    values = channels.to("cpu", torch.float32).numpy().astype(np.int64)
    if not values[0, -1]:
        return None
    digits = values[:, :-1].reshape(len(values), len(DIGITS), NUMBERS)
    numbers = np.tensordot(digits, np.asarray(DIGITS), axes=(1, 0))
    return Piece(numbers[:, :3].T, int(numbers[0, 3]), int(numbers[0, 4]))
