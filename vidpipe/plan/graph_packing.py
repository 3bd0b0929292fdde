"""Which items of an encoder call replay which captured graph, and which run without one. Pure arithmetic.

vLLM's own packer (see `plan.encoder_graphs`) fills batches greedily and never asks what
running without a graph would cost. Here a call is divided so that its expected time is
least: over all divisions of the items, ordered by size, into consecutive groups, and for
each group the smallest graph that takes it or no graph at all. The plan uses this to
foretell padding, and the vLLM plugin to divide real calls.

"Sequences" are what the encoder's attention never crosses: temporal patches (Qwen3-VL),
frames (ERNIE), windows of frames (LLaVA-OneVision-2).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

MOST_ITEMS = 64
"""Items of a call that are divided together; the work grows with the square of it."""


@dataclass(frozen=True)
class EncoderItem:
    """A video or an image as the encoder sees it."""

    tokens: int
    """Rows that leave the encoder's merger, before pruning."""
    sequences: int
    patches_per_sequence: int
    """Of its longest sequence."""


@dataclass(frozen=True)
class Graph:
    """What one captured graph takes."""

    tokens: int
    """Its budget: rows that it computes whatever is put in."""
    sequences: int
    patches_per_sequence: int
    """The attention kernel computes no rows beyond this, so a longer sequence would come out wrong without a word."""


@dataclass(frozen=True)
class Graphs:
    """All captured graphs, ascending in tokens, and the limits beside them."""

    graphs: tuple[Graph, ...]
    max_items: int
    """Items in one replay."""
    eager_tokens: int
    """Tokens that may run together without a graph (memory); a larger item passes alone."""

    def as_json(self) -> dict[str, Any]:
        """For `from_json`, in another process."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Graphs:
        """The graphs that `as_json` was made of."""
        return cls(tuple(Graph(**graph) for graph in values["graphs"]), values["max_items"], values["eager_tokens"])


@dataclass(frozen=True)
class Costs:
    """What running takes, in any one unit."""

    replay: tuple[float, ...]
    """Of each graph, its copies included."""
    eager: tuple[tuple[int, float], ...]
    """Tokens and cost of runs without a graph, ascending; flat before the first, straight lines between, in
    proportion beyond the last."""

    def without_graph(self, tokens: int) -> float:
        """Cost of `tokens` without a graph."""
        place = bisect_left(self.eager, tokens, key=lambda point: point[0])
        if place == 0:
            return self.eager[0][1]
        left, left_cost = self.eager[place - 1]
        if place == len(self.eager):
            return left_cost * tokens / left
        right, right_cost = self.eager[place]
        return left_cost + (right_cost - left_cost) * (tokens - left) / (right - left)


@dataclass(frozen=True)
class Pack:
    """Items that run together."""

    items: tuple[int, ...]
    """Their numbers in the call."""
    tokens: int
    graph: int | None
    """Number of the graph that is replayed; None runs without."""


def pack(items: Sequence[EncoderItem], graphs: Graphs, costs: Costs) -> list[Pack]:
    """The division of a call that costs least; every item once.

    Args:
        items: The items of the call.
        graphs: What was captured; may be empty.
        costs: One replay cost for each graph.
    """
    tokens = sum(item.tokens for item in items)
    if items and tokens <= graphs.eager_tokens and _none_can_help(tokens, graphs, costs):
        return [Pack(tuple(range(len(items))), tokens, None)]
    order = sorted(range(len(items)), key=lambda i: items[i].tokens)
    packs: list[Pack] = []
    for first in range(0, len(order), MOST_ITEMS):
        packs += _pack_sorted(order[first : first + MOST_ITEMS], items, graphs, costs)
    return packs


def cost_of(packs: Sequence[Pack], costs: Costs) -> float:
    """What the packs of a call cost together."""
    return sum(costs.without_graph(p.tokens) if p.graph is None else costs.replay[p.graph] for p in packs)


def captured_tokens(packs: Sequence[Pack], graphs: Graphs) -> tuple[int, int]:
    """Tokens that the replays of a call compute, and those of them that were asked for."""
    replays = [p for p in packs if p.graph is not None]
    return sum(graphs.graphs[p.graph].tokens for p in replays if p.graph is not None), sum(p.tokens for p in replays)


def _none_can_help(tokens: int, graphs: Graphs, costs: Costs) -> bool:
    """Whether so many tokens cost no more without a graph than at the best rate that any full graph has.

    Decides most full calls at once; looking at every division of one takes milliseconds.
    """
    best_rate = min((cost / graph.tokens for graph, cost in zip(graphs.graphs, costs.replay, strict=True)), default=0.0)
    return not graphs.graphs or costs.without_graph(tokens) <= tokens * best_rate


def _pack_sorted(order: Sequence[int], items: Sequence[EncoderItem], graphs: Graphs, costs: Costs) -> list[Pack]:
    """`pack` for item numbers in ascending order of their tokens: shortest path over the cuts between them."""
    best: list[tuple[float, int, int | None]] = [(0.0, 0, None)]  # cost up to here, where the last pack begins, graph
    for end in range(1, len(order) + 1):
        found: tuple[float, int, int | None] | None = None
        tokens = sequences = longest = 0
        for begin in range(end - 1, -1, -1):
            item = items[order[begin]]
            tokens, sequences = tokens + item.tokens, sequences + item.sequences
            longest = max(longest, item.patches_per_sequence)
            if tokens <= graphs.eager_tokens or begin == end - 1:
                cost = best[begin][0] + costs.without_graph(tokens)
                if found is None or cost <= found[0]:
                    found = (cost, begin, None)
            graph = _smallest(graphs, end - begin, tokens, sequences, longest)
            if graph is not None:
                cost = best[begin][0] + costs.replay[graph]
                if found is None or cost < found[0]:
                    found = (cost, begin, graph)
        assert found is not None
        best.append(found)
    packs: list[Pack] = []
    end = len(order)
    while end:
        _, begin, graph = best[end]
        members = tuple(order[begin:end])
        packs.append(Pack(members, sum(items[i].tokens for i in members), graph))
        end = begin
    return packs[::-1]


def _smallest(graphs: Graphs, count: int, tokens: int, sequences: int, longest: int) -> int | None:
    if count > graphs.max_items:
        return None
    for place in range(bisect_left(graphs.graphs, tokens, key=lambda graph: graph.tokens), len(graphs.graphs)):
        graph = graphs.graphs[place]
        if sequences <= graph.sequences and longest <= graph.patches_per_sequence:
            return place
    return None
