"""Budgets that fit: the set of graph sizes with the least expected cost under a memory limit. Exact, by dynamic
programming over a histogram of batch sizes.

A batch of n tokens replays the smallest captured budget b >= n and pays for b, or runs
without a graph and pays what that costs. Every budget also costs memory, which the
language model's cache then lacks; its price keeps budgets out that save next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

MEMORY_STEPS = 128
"""Steps in which memory is counted, each budget's share rounded up; limits below this many tokens are exact."""
MOST_SIZES = 256
"""Distinct batch sizes looked at; more are first rounded up to this many."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Memory:
    """What captured graphs take."""

    buffer_bytes_per_token: int
    """Input and output buffers, which every graph has for itself."""
    work_bytes_per_token: int
    """Intermediate values, which all graphs share: the largest counts."""
    limit_bytes: int

    def bytes_of(self, budgets: tuple[int, ...]) -> int:
        """Of graphs with these budgets."""
        return sum(budgets) * self.buffer_bytes_per_token + max(budgets, default=0) * self.work_bytes_per_token


def choose_budgets(
    batches: Mapping[int, float],
    *,
    most: int,
    memory: Memory,
    replay: Callable[[int], float],
    without: Callable[[int], float],
    byte_price: float = 0.0,
) -> tuple[int, ...]:
    """The budgets, ascending, that minimise expected cost plus the price of their memory; may be none.

    Args:
        batches: Tokens of a batch -> how often it is expected.
        most: Number of budgets allowed.
        memory: What they may take.
        replay: Cost of replaying a budget.
        without: Cost of so many tokens without a graph.
        byte_price: Cost of a byte of graph memory, in the unit of the batches' costs together.
    """
    sizes, weights = _histogram(batches)
    if not sizes.size:
        return ()
    unit, room = _memory_grid(memory)
    eager = np.array([without(int(n)) for n in sizes])
    covered = _interval_costs(sizes, weights, eager, replay, byte_price * memory.buffer_bytes_per_token)
    tail = np.concatenate([np.cumsum((weights * eager)[::-1])[::-1], [0.0]])  # what is above the last budget
    units = np.ceil(sizes * memory.buffer_bytes_per_token / unit).astype(int)
    # table[j, m]: least cost of all sizes up to the j-th, which is the largest budget so far, in m units of memory
    count = len(sizes)
    table: Floats | None = None
    choices: list[npt.NDArray[np.int64]] = []
    answer, found = float(tail[0]), None
    for used in range(1, min(most, count) + 1):
        table, chosen = _one_more(table, covered, units, room)
        choices.append(chosen)
        for j in range(count):
            left = room - -(-int(sizes[j]) * memory.work_bytes_per_token // unit)
            if left < 0:
                break
            place = int(np.argmin(table[j, : left + 1]))
            cost = table[j, place] + tail[j + 1] + byte_price * memory.work_bytes_per_token * float(sizes[j])
            if cost < answer - 1e-9 * abs(answer):
                answer, found = cost, (used, j, place)
    budgets: list[int] = []
    if found is not None:
        used, j, place = found
        while j >= 0:
            budgets.append(int(sizes[j]))
            before = int(choices[used - 1][j, place])
            place -= int(units[j])
            used, j = used - 1, before
    return tuple(budgets[::-1])


def _histogram(batches: Mapping[int, float]) -> tuple[npt.NDArray[np.int64], Floats]:
    """Sizes ascending and their weights; neighbours are rounded up to the larger one where there are too many."""
    sizes = np.array(sorted(n for n in batches if n > 0), dtype=np.int64)
    weights = np.array([batches[int(n)] for n in sizes], dtype=float)
    if len(sizes) <= MOST_SIZES:
        return sizes, weights
    # equal shares of the tokens, so that no single rounding weighs much
    share = np.cumsum(sizes * weights)
    bins = np.minimum((share / share[-1] * MOST_SIZES).astype(int), MOST_SIZES - 1)
    last = np.append(np.flatnonzero(np.diff(bins)), len(sizes) - 1)
    return sizes[last], np.diff(np.concatenate([[0.0], np.cumsum(weights)[last]]))


def _memory_grid(memory: Memory) -> tuple[int, int]:
    """Bytes of one step, and steps in the limit."""
    unit = max(1, memory.buffer_bytes_per_token, -(-memory.limit_bytes // MEMORY_STEPS))
    return unit, memory.limit_bytes // unit


def _interval_costs(
    sizes: npt.NDArray[np.int64], weights: Floats, eager: Floats, replay: Callable[[int], float], token_price: float
) -> Floats:
    """[i, j]: cost of the sizes above the (i-1)-th, up to the j-th, with the j-th as their budget."""
    costs = np.full((len(sizes) + 1, len(sizes)), np.inf)
    for j, size in enumerate(sizes):
        each = weights[: j + 1] * np.minimum(replay(int(size)), eager[: j + 1])
        costs[: j + 1, j] = np.cumsum(each[::-1])[::-1] + token_price * float(size)
    return costs


def _one_more(
    table: Floats | None, covered: Floats, units: npt.NDArray[np.int64], room: int
) -> tuple[Floats, npt.NDArray[np.int64]]:
    """The table with one budget more, and which budget stands below each; -1 for none."""
    count = covered.shape[1]
    grown = np.full((count, room + 1), np.inf)
    chosen = np.full((count, room + 1), -1, dtype=np.int64)
    for j in range(count):
        need = int(units[j])
        if need > room:
            break
        if table is None:
            grown[j, need:] = covered[0, j]
            continue
        if j == 0:
            continue
        candidates = table[:j, : room + 1 - need] + covered[1 : j + 1, j][:, None]
        best = np.argmin(candidates, axis=0)
        grown[j, need:] = candidates[best, np.arange(candidates.shape[1])]
        chosen[j, need:] = best
    return grown, chosen
