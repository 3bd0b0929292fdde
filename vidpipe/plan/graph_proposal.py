"""From a plan's videos to encoder graphs: budgets, items and sequences a replay, expected padding and memory. Pure.

How many videos reach the encoder at once depends on what keeps the engine waiting: each
alone where decoding is the bottleneck, calls filled up to what the engine encodes in one
step where the engine is. Budgets are chosen for both ends and some steps between, each
with all of the plan's videos.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from vidpipe.plan import encoder_graphs as upstream
from vidpipe.plan.graph_budgets import Memory, choose_budgets
from vidpipe.plan.graph_packing import Costs, EncoderItem, Graph, Graphs, captured_tokens, cost_of, pack

MOST_BUDGETS = 16
MEMORY_LIMIT_BYTES = 4 * 2**30
LAUNCH_TOKENS = 3000
"""Tokens that the encoder computes in the time that launching its kernels one by one takes: 26.8 ms at 8.2 us a token
(Qwen3-VL-2B shape, H200, vLLM 0.33). Calls above it gain nothing by a graph. Only the first guess of `auto`: a
measurement at the engine's start decides."""
REPLAY_TOKENS = 250
"""The same for preparing and copying a replay's buffers."""
MOST_PADDING, MOST_TOKENS = 1.25, 2**20
"""With `on`: a graph is used up to so many times the tokens asked for."""
BYTE_PRICE = 0.005 / 2**30
"""Share of the encoder's work that a byte of graph memory must save: half a percent for a GiB."""
FILLINGS = (1, 2, 4, 8)
"""Divisors of a full call."""
LOOKED_AT = 512
"""Videos of a plan that are simulated; of longer plans every n-th."""


@dataclass(frozen=True)
class Padding:
    """What the replays of a simulated plan compute."""

    captured_tokens: int
    used_tokens: int
    all_tokens: int
    """With those that run without a graph."""

    @property
    def share(self) -> float:
        """Share of the computed tokens that nobody asked for."""
        return 1 - self.used_tokens / self.captured_tokens if self.captured_tokens else 0.0

    @property
    def in_graphs(self) -> float:
        """Share of the tokens that go through graphs."""
        return self.used_tokens / self.all_tokens if self.all_tokens else 0.0


@dataclass(frozen=True)
class Proposal:
    """Graphs for a plan; without any where none would save time."""

    graphs: Graphs
    memory_bytes: int
    """Expected, from the encoder's shape."""
    padding: Padding
    default_padding: Padding
    """With vLLM's automatic budgets, as if its packer never failed."""


def encoder_item(grid_thw: tuple[int, int, int], merge: int) -> EncoderItem:
    """A video of a family's `VideoLayout`.

    Args:
        grid_thw: Patches along time, height and width.
        merge: Patches along each side that become one token.
    """
    steps, height, width = grid_thw
    return EncoderItem(steps * height * width // merge**2, steps, height * width)


def token_costs(budgets: Sequence[int], *, always: bool) -> Costs:
    """Expected costs in tokens, before anything is measured.

    Args:
        budgets: Of the graphs, ascending.
        always: Whether graphs are wanted wherever they fit without much padding.
    """
    replay = tuple(float(budget + REPLAY_TOKENS) for budget in budgets)
    if always:
        return Costs(replay, ((0, LAUNCH_TOKENS), (MOST_TOKENS, LAUNCH_TOKENS + MOST_PADDING * MOST_TOKENS)))
    return Costs(replay, ((LAUNCH_TOKENS, LAUNCH_TOKENS),))


def expected_calls(items: Sequence[EncoderItem], call_tokens: int) -> list[list[EncoderItem]]:
    """Encoder calls of a plan: every item alone, and all again in calls of at most each `FILLINGS` of `call_tokens`."""
    looked_at = list(items[:: max(1, len(items) // LOOKED_AT)])
    calls = [[item] for item in looked_at]
    for filling in FILLINGS:
        call: list[EncoderItem] = []
        tokens = 0
        for item in looked_at:
            if call and tokens + item.tokens > call_tokens // filling:
                calls.append(call)
                call, tokens = [], 0
            call.append(item)
            tokens += item.tokens
        if call:
            calls.append(call)
    return calls


def propose(
    items: Sequence[EncoderItem],
    *,
    step_tokens: int,
    memory: Memory,
    always: bool = False,
    most: int = MOST_BUDGETS,
) -> Proposal:
    """The graphs that cost least over the plan's expected calls.

    Args:
        items: The plan's videos in working order.
        step_tokens: Prompt tokens that the engine takes in one step; the last video of a step may reach beyond it.
        memory: What graphs take and may take.
        always: Whether graphs are wanted wherever they fit without much padding, instead of where they save time.
        most: Number of graphs allowed.
    """
    if not items:
        return Proposal(Graphs((), 0, step_tokens), 0, Padding(0, 0, 0), Padding(0, 0, 0))
    largest = max(item.tokens for item in items)
    call_tokens = max(step_tokens, largest)
    calls = expected_calls(items, call_tokens)
    lists = {(), _default_budgets(call_tokens, most, memory)}
    for cap in {largest, *(call_tokens // n for n in FILLINGS), LAUNCH_TOKENS}:
        lists.add(_fitted(_greedy_sums(calls, cap), most, memory, calls, always))
    best = min(lists, key=lambda budgets: _score(budgets, items, calls, call_tokens, memory, always))
    for _ in range(2):  # the division follows the budgets, so fit them again to what they lead to
        sums = _sums(best, items, calls, call_tokens, always)
        again = _fitted(sums, most, memory, calls, always)
        best = min(best, again, key=lambda budgets: _score(budgets, items, calls, call_tokens, memory, always))
    graphs = graphs_for(best, items, step_tokens + largest)
    return Proposal(
        graphs, memory.bytes_of(best), _padding(graphs, calls, always), default_padding(items, calls, call_tokens)
    )


def graphs_for(budgets: Sequence[int], items: Sequence[EncoderItem], eager_tokens: int) -> Graphs:
    """Graphs with these budgets whose limits cover every batch that the plan's items can make.

    Args:
        budgets: Ascending; none below the smallest item.
        items: The plan's videos.
        eager_tokens: See `Graphs`.
    """
    if not budgets:
        return Graphs((), 0, eager_tokens)
    sorts = sorted(set(items), key=lambda item: item.tokens)
    # Upstream refuses more items than the smallest budget has tokens.
    max_items = max(1, min(budgets[-1] // max(1, sorts[0].tokens), budgets[0]))
    graphs = []
    for budget in budgets:
        fitting = [item for item in sorts if item.tokens <= budget] or sorts[:1]
        by_tokens = max(budget * item.sequences // max(1, item.tokens) for item in fitting)
        by_items = max_items * max(item.sequences for item in fitting)
        longest = max(item.patches_per_sequence for item in fitting)
        graphs.append(Graph(budget, max(1, min(by_tokens, by_items)), longest))
    return Graphs(tuple(graphs), max_items, eager_tokens)


def default_padding(items: Sequence[EncoderItem], calls: Sequence[Sequence[EncoderItem]], call_tokens: int) -> Padding:
    """What vLLM's automatic budgets and its packer would compute for these calls.

    Counted against the rows that it captures, which its capture grid makes more than the budget.
    """
    longest = max((item.sequences for item in items), default=1)
    limits = upstream.graph_limits(model_range=(64, max(64, call_tokens)), model_steps_per_video=longest, video_limit=1)
    captured = used = every = 0
    for call in calls:
        for batch in upstream.pack([item.tokens for item in call], limits):
            every += batch.tokens
            if batch.budget is not None:
                captured += upstream.captured_tokens(batch.budget, limits)
                used += batch.tokens
    return Padding(captured, used, every)


def _default_budgets(call_tokens: int, most: int, memory: Memory) -> tuple[int, ...]:
    budgets = tuple(upstream.budgets_between(64, max(64, call_tokens)))[-most:]
    return budgets if memory.bytes_of(budgets) <= memory.limit_bytes else ()


def _greedy_sums(calls: Sequence[Sequence[EncoderItem]], cap: int) -> Counter[int]:
    sums: Counter[int] = Counter()
    for call in calls:
        tokens = 0
        for more in sorted(item.tokens for item in call):
            if tokens and tokens + more > cap:
                sums[tokens] += 1
                tokens = 0
            tokens += more
        sums[tokens] += 1
    return sums


def _sums(
    budgets: Sequence[int],
    items: Sequence[EncoderItem],
    calls: Sequence[Sequence[EncoderItem]],
    limit: int,
    always: bool,
) -> Counter[int]:
    graphs, costs = graphs_for(budgets, items, limit), token_costs(budgets, always=always)
    return Counter(part.tokens for call in calls for part in pack(call, graphs, costs))


def _fitted(
    sums: Counter[int], most: int, memory: Memory, calls: Sequence[Sequence[EncoderItem]], always: bool
) -> tuple[int, ...]:
    return choose_budgets(
        sums,
        most=most,
        memory=memory,
        replay=lambda budget: float(budget + REPLAY_TOKENS),
        without=token_costs((), always=always).without_graph,
        byte_price=BYTE_PRICE * _tokens(calls),
    )


def _score(
    budgets: tuple[int, ...],
    items: Sequence[EncoderItem],
    calls: Sequence[Sequence[EncoderItem]],
    limit: int,
    memory: Memory,
    always: bool,
) -> float:
    graphs, costs = graphs_for(budgets, items, limit), token_costs(budgets, always=always)
    work = sum(cost_of(pack(call, graphs, costs), costs) for call in calls)
    return work + BYTE_PRICE * _tokens(calls) * memory.bytes_of(budgets)


def _tokens(calls: Sequence[Sequence[EncoderItem]]) -> int:
    return sum(item.tokens for call in calls for item in call)


def _padding(graphs: Graphs, calls: Sequence[Sequence[EncoderItem]], always: bool) -> Padding:
    costs = token_costs([graph.tokens for graph in graphs.graphs], always=always)
    captured = used = 0
    for call in calls:
        computed, asked = captured_tokens(pack(call, graphs, costs), graphs)
        captured, used = captured + computed, used + asked
    return Padding(captured, used, _tokens(calls))
