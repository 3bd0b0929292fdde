"""Input buffers of encoder graphs with exactly the rows of their budget, and how replays fill them.

Upstream builds buffers from a grid of equal items, rounding up twice (a budget of 300 tokens
for 8 items and 128 frames computes 384), bakes the whole budget into attention as the longest
sequence, and zeroes every buffer before each copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from vidpipe.plan.graph_packing import Graph

ROW = 64
"""Tokens of a row of the made-up picture that a graph is captured with; rotary tables end at some thousand."""


def capture_grid(tokens: int, merge: int) -> list[list[int]]:
    """A grid (time, height, width in patches) of exactly `tokens` merged tokens."""
    full, rest = divmod(tokens, ROW)
    grid = [[full, merge, merge * ROW]] if full else []
    return [*grid, [1, merge, merge * rest]] if rest else grid


def capture_borders(graph: Graph, merge: int, device: Any) -> Any:
    """Borders of attention sequences (cu_seqlens), int32 [sequences + 1], as long as a replay may need."""
    borders = np.arange(graph.sequences + 1, dtype=np.int64) * graph.patches_per_sequence
    return torch.from_numpy(np.minimum(borders, graph.tokens * merge**2).astype(np.int32)).to(device)


def fill_rows(buffer: Any, rows: Any) -> None:
    """Copy rows to the buffer's beginning. What stood behind them stays: no sequence reaches it, nobody reads it."""
    buffer[: rows.shape[0]].copy_(rows)


def fill_borders(buffer: Any, borders: Any) -> None:
    """Copy borders; those left over repeat the last one, which makes their sequences empty."""
    count = borders.shape[0]
    buffer[:count].copy_(borders)
    if count < buffer.shape[0]:
        buffer[count:].copy_(borders[-1:].expand(buffer.shape[0] - count))


def padding_logics(buffer_keys: list[str]) -> dict[str, Any]:
    """For `EncoderCudaGraphConfig.padding_logics`."""
    return {key: fill_borders if key == "cu_seqlens" else fill_rows for key in buffer_keys}
