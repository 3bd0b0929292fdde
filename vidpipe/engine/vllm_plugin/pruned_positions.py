"""Positions of prompts with pruned videos that do not depend on which tokens were kept, and rows that know their own.

Kept tokens keep the positions that they have in the whole video, and the last row of an item
is the last pair's vision end. So the position behind an item is known before the encoder has
run: its text rows, and for each pair the longer side of its grid. Everything outside an item
can be right from the start; the rows inside are written when their embeddings arrive, at the
place that the rows themselves tell.

Positions are int64 [3, tokens] (time, height, width). Sources of the layout: vLLM
`model_executor/models/qwen3_vl.py` (`get_video_repl`, `_get_mrope_input_positions`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Item:
    """An image or a video in a prompt."""

    start: int
    """Place of its first row; of a video that is its first time text."""
    rows: int
    grid_thw: tuple[int, int, int]
    """Tokens along time, height and width, after merging."""
    is_video: bool


def initial_positions(ids: Integers, items: Iterable[Item], video_id: int) -> Integers:
    """Positions before any token is kept or dropped, [3, tokens].

    Exact for text, for images, for whole videos and for everything behind a pruned one. Rows
    inside a pruned one get the item's last position, so that the largest of all is right too.

    Args:
        ids: The prompt as the engine has it; all tokens kept of a pruned video stand in its first pair.
        items: In the order of the prompt.
        video_id: The token that a vision token of a video is.
    """
    positions = np.empty((3, len(ids)), dtype=np.int64)
    end = following = 0
    for item in items:
        text = item.start - end
        positions[:, end : item.start] = following + np.arange(text)
        end, base = item.start + item.rows, following + text
        local, span = positions_within(ids[item.start : end] == video_id, item)
        positions[:, item.start : end] = base + local
        following = base + span
    positions[:, end:] = following + np.arange(len(ids) - end)
    return positions


def positions_within(is_vision: npt.NDArray[np.bool_], item: Item) -> tuple[Integers, int]:
    """Positions of an item's rows counted from its start, [3, rows], and how many positions it takes.

    Args:
        is_vision: Which of its rows are vision tokens, [rows].
        item: The item; where it starts does not matter.
    """
    pairs, height, width = item.grid_thw
    grid = np.indices((1, height, width)).reshape(3, -1)
    if not item.is_video:
        return grid, max(height, width)
    tokens = int(np.count_nonzero(is_vision))
    span = item.rows - tokens + pairs * max(height, width)
    firsts = first_of_runs(is_vision)
    if tokens != pairs * height * width or len(firsts) != pairs:
        return np.full((3, item.rows), span - 1), span
    taken = np.where(is_vision, 0, 1)
    taken[firsts + height * width - 1] = max(height, width)
    local = np.tile(np.cumsum(taken) - taken, (3, 1))
    local[:, is_vision] += np.tile(grid, pairs)
    return local, span


def first_of_runs(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Where runs of True begin."""
    return np.flatnonzero(mask & ~np.concatenate([[False], mask[:-1]]))


@dataclass(frozen=True)
class Piece:
    """Rows of one pruned video that stand in one prefill chunk."""

    local: Integers
    """[3, rows]: positions counted from the video's start."""
    first: int
    """Which row of the video the first one is."""
    lead: int
    """Tokens of the video's first time text; behind them stands the first vision start."""


def write_pieces(
    positions: Integers, ids: Integers, pieces: Sequence[Piece], video_id: int, computed_tokens: int
) -> None:
    """Write the rows of `pieces` into `positions` [3, tokens], in place. Writing the same twice changes nothing.

    Args:
        positions: As `initial_positions` gives them, or as left by an earlier chunk.
        ids: The prompt as the engine has it.
        pieces: In the order of the prompt.
        video_id: The token that a vision token of a video is.
        computed_tokens: Tokens of the prompt before the chunk.

    Raises:
        ValueError: a piece belongs to no video of the prompt.
    """
    runs = first_of_runs(ids == video_id)
    cursor = computed_tokens
    for piece in pieces:
        starts = runs - 1 - piece.lead  # a pruned video has one run of vision tokens, in its first pair
        fitting = starts[starts + piece.first >= cursor]
        if not len(fitting):
            raise ValueError(f"{piece.local.shape[1]} rows of a pruned video fit nowhere behind token {cursor}")
        start = int(fitting[0])
        first, cursor = start + piece.first, start + piece.first + piece.local.shape[1]
        base = int(positions[0, start - 1]) + 1 if start else 0
        positions[:, first:cursor] = piece.local + base
