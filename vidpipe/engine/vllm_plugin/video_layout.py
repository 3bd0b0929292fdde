"""Rows of a whole video's placeholder, before any is dropped. Pure.

Source: vLLM `model_executor/models/qwen3_vl.py` (`get_video_repl`): for each pair its time text, a
vision start, its tokens, a vision end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from vidpipe.engine.vllm_plugin.pruned_positions import Integers, Item, positions_within
from vidpipe.engine.vllm_plugin.row_channels import place_channels


@dataclass(frozen=True)
class Grid:
    """A video's tokens before pruning."""

    pairs: int
    tokens_per_pair: int

    @property
    def tokens(self) -> int:
        """Of all pairs."""
        return self.pairs * self.tokens_per_pair


@dataclass(frozen=True)
class VideoLayout:
    """Where a video's text and its tokens stand; arrays are shared between clips, so nobody writes to them."""

    grid: Grid
    text_ids: Integers
    """[text rows]: time texts, vision starts and ends."""
    text_places: Integers
    """[text rows]: rows of the whole video that they are."""
    token_places: Integers
    """[tokens]: rows of the whole video that the tokens are."""
    channels: npt.NDArray[np.uint8]
    """[rows of the whole video, `CHANNELS`], but for the rows' numbers."""


@lru_cache(maxsize=65_536)
def time_text(tokenizer: Any, text: str) -> tuple[int, ...]:
    """Tokens of a pair's time text. Kept: a tokeniser takes tens of microseconds for each, and clips share them."""
    return tuple(tokenizer.encode(text, add_special_tokens=False))


def time_texts(tokenizer: Any, times_s: Sequence[float]) -> tuple[tuple[int, ...], ...]:
    """Tokens of the time texts of a video's pairs."""
    return tuple(time_text(tokenizer, f"<{time_s:.1f} seconds>") for time_s in times_s)


@lru_cache(maxsize=64)
def video_layout(
    texts: tuple[tuple[int, ...], ...], grid_thw: tuple[int, int, int], start_id: int, end_id: int
) -> VideoLayout:
    """The layout of a video; kept, because clips of a job tend to be of one size.

    Args:
        texts: Tokens of the time text of each pair.
        grid_thw: Tokens along time, height and width, after merging.
        start_id: The token that a vision start is.
        end_id: The token that a vision end is.
    """
    pairs, height, width = grid_thw
    lengths = np.ones((pairs, 3), dtype=np.int64)  # text with the vision start, tokens, vision end
    lengths[:, 0] += [len(text) for text in texts]
    lengths[:, 1] = height * width
    is_vision = np.repeat(np.tile([False, True, False], pairs), lengths.reshape(-1))
    local, _ = positions_within(is_vision, Item(0, len(is_vision), grid_thw, is_video=True))
    return VideoLayout(
        Grid(pairs, height * width),
        np.array([token for text in texts for token in (*text, start_id, end_id)], dtype=np.int64),
        np.flatnonzero(~is_vision),
        np.flatnonzero(is_vision),
        place_channels(local, len(texts[0])),
    )
