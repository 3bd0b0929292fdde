"""What vLLM's encoder CUDA graphs will do with a batch: budgets, packing, sharing over ranks. Pure arithmetic.

A graph is captured for some numbers of output tokens (budgets, counted after merging);
a batch of items replays the smallest one that it fits, padded. An item above the largest
runs without a graph. With this a plan can tell hits, misses and padding before a GPU is
there.

Sources: vLLM `v1/worker/encoder_cudagraph.py` (`_generate_budgets`, `__init__`,
`_execute_local`), `model_executor/models/vision.py` (`get_load_balance_assignment`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class GraphLimits:
    """What the engine settles on at its start."""

    token_budgets: tuple[int, ...]
    """Output tokens of each captured graph, ascending."""
    max_items: int
    """Items in one batch."""
    max_steps: int
    """Temporal patches in one batch; the packer never looks at it, and a batch above it crashes (vllm#43403)."""


@dataclass(frozen=True)
class Batch:
    """Items that the encoder takes together."""

    items: tuple[int, ...]
    """Their numbers in the request."""
    tokens: int
    budget: int | None
    """Tokens of the graph that is replayed; None where none is large enough."""

    @property
    def padding(self) -> int:
        """Tokens computed for nothing."""
        return 0 if self.budget is None else self.budget - self.tokens


def budgets_between(smallest: int, largest: int) -> list[int]:
    """Budgets doubling from `smallest`, and `largest` as the last."""
    budgets = []
    while smallest <= largest:
        budgets.append(smallest)
        smallest *= 2
    if not budgets or budgets[-1] < largest:
        budgets.append(largest)
    return budgets


def graph_limits(
    *,
    model_range: tuple[int, int],
    model_steps_per_video: int,
    video_limit: int,
    token_budgets: Sequence[int] = (),
    max_items: int = 0,
    max_steps: int | None = None,
) -> GraphLimits:
    """The limits under given options; 0, empty and None mean automatic.

    Args:
        model_range: Smallest and largest budget that the model proposes.
        model_steps_per_video: Temporal patches that the model expects of a video.
        video_limit: Videos allowed in one prompt.
        token_budgets: `encoder_cudagraph_token_budgets`.
        max_items: `encoder_cudagraph_max_vision_items_per_batch`.
        max_steps: `encoder_cudagraph_max_frames_per_batch`.

    Raises:
        ValueError: the engine would refuse to start.
    """
    budgets = sorted(token_budgets)
    if budgets and max_items > 0:
        if max_items > budgets[0]:
            raise ValueError(f"{max_items} items a batch are more than the smallest budget of {budgets[0]} tokens")
        items = max_items
    else:
        low, high = model_range
        if low <= 0 or high <= 0 or low > high:
            raise ValueError(f"budgets from {low} to {high} are no range")
        if max_items > 0:
            items, budgets = max_items, budgets_between(max(low, max_items), high)
        else:
            budgets = budgets or budgets_between(low, high)
            items = min(high // low, budgets[0])
    steps = items * model_steps_per_video if max_steps is None else max_steps
    return GraphLimits(tuple(budgets), items, steps if video_limit else 0)


def pack(item_tokens: Sequence[int], limits: GraphLimits) -> list[Batch]:
    """The batches in the order in which they run, smallest items first.

    A batch is closed when it is full, or early when the next item would make its graph
    larger than the two graphs that they need apart, and is itself the larger of the two.

    Args:
        item_tokens: Output tokens of each item of a request.
        limits: The engine's limits.
    """
    batches: list[Batch] = []
    items: list[int] = []
    tokens = 0
    for item in sorted(range(len(item_tokens)), key=item_tokens.__getitem__):
        more = item_tokens[item]
        full = len(items) >= limits.max_items or tokens + more > limits.token_budgets[-1]
        if items and (full or _better_apart(tokens, more, limits.token_budgets)):
            batches.append(Batch(tuple(items), tokens, _fitting(tokens, limits.token_budgets)))
            items, tokens = [], 0
        items.append(item)
        tokens += more
    if items:
        batches.append(Batch(tuple(items), tokens, _fitting(tokens, limits.token_budgets)))
    return batches


def captured_tokens(budget: int, limits: GraphLimits) -> int:
    """Tokens that a replay of `budget` really computes: the grid that upstream captures it with rounds up twice.

    Source: `Qwen3VLForConditionalGeneration.prepare_encoder_cudagraph_capture_inputs`.
    """
    tokens_per_item = -(-budget // limits.max_items)
    steps_per_item = limits.max_steps // limits.max_items
    if steps_per_item > 1:
        tokens_per_item = steps_per_item * -(-tokens_per_item // steps_per_item)
    return limits.max_items * tokens_per_item


def too_long(batches: Sequence[Batch], item_steps: Sequence[int], limits: GraphLimits) -> list[Batch]:
    """The batches that crash the engine: more temporal patches than its graphs were captured for (vllm#43403).

    The packer counts tokens and items only, so long clips of low resolution get there.

    Args:
        batches: As `pack` made them.
        item_steps: Temporal patches of each item of the request.
        limits: The engine's limits.
    """
    return [
        batch
        for batch in batches
        if batch.budget is not None and sum(item_steps[item] for item in batch.items) > limits.max_steps
    ]


@dataclass(frozen=True)
class Assignment:
    """Items shared out over the ranks of a data-parallel encoder."""

    order: tuple[int, ...]
    """Items, those of the first rank first."""
    counts: tuple[int, ...]
    """Items of each rank."""
    loads: tuple[int, ...]
    """Size of each rank's items together."""


def assign_to_ranks(sizes: Sequence[int], ranks: int) -> Assignment:
    """Largest item first, each to the rank with the least so far (of equal ones the lower).

    Args:
        sizes: Input patches of each item; one item is never divided.
        ranks: Tensor-parallel size.
    """
    members: list[list[int]] = [[] for _ in range(ranks)]
    loads = [0] * ranks
    for item in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        rank = loads.index(min(loads))
        members[rank].append(item)
        loads[rank] += sizes[item]
    order = tuple(item for rank in members for item in rank)
    return Assignment(order, tuple(map(len, members)), tuple(loads))


def _fitting(tokens: int, budgets: Sequence[int]) -> int | None:
    if tokens == 0:
        return 0
    place = bisect_left(budgets, tokens)
    return budgets[place] if place < len(budgets) else None


def _better_apart(tokens: int, more: int, budgets: Sequence[int]) -> bool:
    current, alone, together = (_fitting(n, budgets) for n in (tokens, more, tokens + more))
    if more == 0 or current is None or alone is None or together is None:
        return False
    return current + alone < together and alone >= current
