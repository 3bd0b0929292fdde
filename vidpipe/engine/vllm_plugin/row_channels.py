"""What rides behind the embeddings of a pruned video: for each row its position, and its place in the video.

Upstream lets the positions ride as they are, in the embeddings' dtype: bfloat16 holds whole
numbers to 256 only and rounds the others. Here a number rides as three base-256 digits, which
bfloat16 and float16 both hold exactly. Pure.

Which rows stay is known on the device only, so a row's channels are a sum of two: what it has
in the whole video, and its number among those that stay.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from vidpipe.engine.vllm_plugin.pruned_positions import Integers, Piece

DIGITS = (65_536, 256, 1)
NUMBERS = 5
"""Time, height, width, row in the video, tokens of its first time text."""
CHANNELS = NUMBERS * len(DIGITS) + 1
"""The last one tells rows of a video (1) from rows of an image (0)."""
Bytes = npt.NDArray[np.uint8]


def place_channels(local: Integers, lead: int) -> Bytes:
    """Channels [rows, `CHANNELS`] of rows of a video, but for their numbers.

    Args:
        local: [3, rows]: positions counted from the video's start, below 2**24.
        lead: Tokens of the video's first time text.
    """
    rows = local.shape[1]
    return _channels([*local, np.zeros(rows, np.int64), np.full(rows, lead)], is_video=1)


def number_channels(rows: int) -> Bytes:
    """What the first so many rows of a video add to their channels, [rows, `CHANNELS`]."""
    zeros = np.zeros(rows, np.int64)
    return _channels([zeros, zeros, zeros, np.arange(rows), zeros], is_video=0)


def _channels(numbers: list[Integers], is_video: int) -> Bytes:
    digits = [number // digit % 256 for digit in DIGITS for number in numbers]
    return np.stack([*digits, np.full_like(numbers[0], is_video)], axis=1).astype(np.uint8)


def piece_of(channels: Bytes) -> Piece | None:
    """What the rows [rows, `CHANNELS`] say; None for those of an image."""
    if not len(channels) or not channels[0, -1]:
        return None
    digits = channels[:, :-1].astype(np.int64).reshape(len(channels), len(DIGITS), NUMBERS)
    numbers = np.tensordot(digits, np.asarray(DIGITS), axes=(1, 0))
    return Piece(numbers[:, :3].T, int(numbers[0, 3]), int(numbers[0, 4]))
