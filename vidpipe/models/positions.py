"""Three-axis positions (mRoPE) of a sequence of text and media blocks; shared by the families that have them.

All arrays are int64 of shape [3, tokens]: rows are time, height and width.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Block:
    """One piece of media in a prompt."""

    offset: int
    """Place of its first vision token."""
    tokens: int
    """Vision tokens that the prompt really has there."""
    local: Positions
    """Positions counted from the block's own start; upstream may give more of them than there are tokens."""


def grid_positions(grids: Sequence[tuple[int, int, int]]) -> Positions:
    """Positions of t x h x w grids of tokens one behind the other, each from one above the largest before it."""
    parts: list[Positions] = []
    start = 0
    for grid in grids:
        part = np.indices(grid).reshape(3, -1).astype(np.int64) + start
        parts.append(part)
        start = int(part.max(initial=start - 1)) + 1
    return np.concatenate(parts, axis=1)


def positions_of(blocks: Iterable[Block], tokens: int) -> Positions:
    """Positions of a prompt of `tokens` tokens with media `blocks` in order.

    Text counts on from one above the largest position before it; so does each block.

    Source: vLLM `models/ernie45_vl.py` and `qwen3_vl.py`, `get_mrope_input_positions`.
    """
    parts: list[Positions] = []
    end, following = 0, 0
    for block in blocks:
        text = block.offset - end
        parts += [_text(text, following), block.local + following + text]
        following = int(parts[-1].max(initial=following + text - 1)) + 1
        end = block.offset + block.tokens
    parts.append(_text(max(0, tokens - end), following))
    return np.concatenate(parts, axis=1)


def delta(positions: Positions, tokens: int) -> int:
    """What is added to a count of tokens to get the position of the next generated one."""
    return int(positions.max()) + 1 - tokens


def _text(tokens: int, start: int) -> Positions:
    return np.tile(np.arange(start, start + tokens, dtype=np.int64), (3, 1))
