"""What becomes of ERNIE-4.5-VL's patches behind the encoder: joined in pairs over time, and their positions.

Source: vLLM `model_executor/models/ernie45_vl.py` (VariableResolutionResamplerModel,
`get_mrope_input_positions`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from vidpipe.models.positions import Block, Positions, grid_positions, positions_of

TEMPORAL = 2


def temporal_pairs(grids_thw: Sequence[tuple[int, int, int]], merge: int) -> list[tuple[int, int]]:
    """Rows of merged patches that are joined over time: frame 0 with 1, 2 with 3; an image with itself.

    Raises:
        ValueError: an odd number of frames above 1, on which upstream fails in the middle of the encoder.
    """
    pairs: list[tuple[int, int]] = []
    start = 0
    for frames, rows, columns in grids_thw:
        if frames > 1 and frames % TEMPORAL:
            raise ValueError(f"{frames} frames cannot be joined in pairs; repeat the last one")
        tokens = rows * columns // merge**2
        for first in range(0, frames, TEMPORAL):
            second = first + (frames > 1)
            pairs += [(start + first * tokens + i, start + second * tokens + i) for i in range(tokens)]
        start += frames * tokens
    return pairs


def mrope_positions(media: Sequence[tuple[int, tuple[int, int, int], bool]], tokens: int, merge: int) -> Positions:
    """Positions [3, tokens] of a whole prompt.

    Args:
        media: For each item its first token's place, its grid of patches, and whether it is a video.
        tokens: Length of the prompt.
        merge: Patches along each side that become one token.
    """
    blocks = []
    for offset, (frames, rows, columns), is_video in sorted(media, key=lambda item: item[0]):
        grid = (frames // TEMPORAL if is_video else frames, rows // merge, columns // merge)
        blocks.append(Block(offset, math.prod(grid), grid_positions([grid])))
    return positions_of(blocks, tokens)
