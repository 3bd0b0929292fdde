"""A call is divided so that it costs least; nothing replays a graph that does not take it."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidpipe.plan.encoder_graphs import GraphLimits
from vidpipe.plan.encoder_graphs import pack as upstream_pack
from vidpipe.plan.graph_packing import MOST_ITEMS, Costs, EncoderItem, Graph, Graphs, captured_tokens, cost_of, pack
from vidpipe.plan.graph_proposal import token_costs

GOLDEN = json.loads((Path(__file__).parents[1] / "parity/golden/encoder_cg_packing.json").read_text())["cases"]
ITEMS = st.lists(
    st.builds(EncoderItem, st.integers(1, 2000), st.integers(1, 64), st.sampled_from([16, 196, 784])), max_size=20
)
BUDGETS = st.lists(st.integers(16, 3000), max_size=6, unique=True).map(sorted)


def graphs_of(budgets: list[int], max_items: int = 8, sequences: int = 64, longest: int = 400) -> Graphs:
    return Graphs(tuple(Graph(b, sequences, longest) for b in budgets), max_items, 4000)


@given(ITEMS, BUDGETS, st.booleans())
def test_every_item_once_and_only_where_it_fits(items: list[EncoderItem], budgets: list[int], always: bool) -> None:
    graphs, costs = graphs_of(budgets), token_costs(budgets, always=always)
    packs = pack(items, graphs, costs)
    assert sorted(i for p in packs for i in p.items) == list(range(len(items)))
    for p in packs:
        members = [items[i] for i in p.items]
        assert p.tokens == sum(item.tokens for item in members)
        if p.graph is None:
            assert len(members) == 1 or p.tokens <= graphs.eager_tokens
            continue
        graph = graphs.graphs[p.graph]
        assert p.tokens <= graph.tokens and len(members) <= graphs.max_items
        assert sum(item.sequences for item in members) <= graph.sequences
        assert max(item.patches_per_sequence for item in members) <= graph.patches_per_sequence


@given(ITEMS, BUDGETS.filter(len))
def test_never_dearer_than_upstream_or_than_no_graphs(items: list[EncoderItem], budgets: list[int]) -> None:
    wide = Graphs(tuple(Graph(b, 10**6, 10**6) for b in budgets), 8, 10**9)
    costs = token_costs(budgets, always=False)
    found = cost_of(pack(items, wide, costs), costs)
    assert found <= costs.without_graph(sum(item.tokens for item in items)) + 1e-6 or not items
    theirs = 0.0
    for batch in upstream_pack([item.tokens for item in items], GraphLimits(tuple(budgets), 8, 0)):
        eager = costs.without_graph(batch.tokens)
        theirs += eager if batch.budget is None else costs.replay[budgets.index(batch.budget)]
    assert found <= theirs + 1e-6


@given(
    st.lists(st.builds(EncoderItem, st.integers(1, 60), st.integers(1, 4), st.integers(1, 4)), max_size=5),
    st.lists(st.tuples(st.integers(10, 150), st.integers(1, 99)), max_size=3, unique_by=lambda graph: graph[0]),
    st.integers(0, 80),
    st.integers(1, 8),
)
def test_no_division_costs_less(
    items: list[EncoderItem], captured: list[tuple[int, int]], start: int, per: int
) -> None:
    graphs = Graphs(tuple(Graph(budget, 8, 3) for budget, _ in sorted(captured)), 3, 100)
    eager = (1, start + per / 8), (10**6, start + 10**6 * per / 8)
    costs = Costs(tuple(cost / 2 for _, cost in sorted(captured)), eager)

    def least(group: list[EncoderItem]) -> float:
        tokens, sequences = sum(item.tokens for item in group), sum(item.sequences for item in group)
        found = start + tokens * per / 8 if len(group) == 1 or tokens <= 100 else float("inf")
        if len(group) > 3 or sequences > 8 or max(item.patches_per_sequence for item in group) > 3:
            return found
        fitting = [cost / 2 for budget, cost in sorted(captured) if budget >= tokens]
        return min([found, *fitting[:1]])

    ordered = sorted(items, key=lambda item: item.tokens)
    divisions: list[float] = []
    for cuts in itertools.product([False, True], repeat=max(0, len(items) - 1)):
        ends = [0, *(place + 1 for place, cut in enumerate(cuts) if cut), len(items)]
        divisions.append(sum(least(ordered[a:b]) for a, b in itertools.pairwise(ends) if a < b))
    packs = pack(items, graphs, costs)
    assert all(p.items for p in packs) and cost_of(packs, costs) == pytest.approx(min(divisions))


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["id"])
def test_no_more_padding_than_upstream_on_its_own_vectors(case: dict[str, Any]) -> None:
    """With replays paid by their tokens alone, and running without a graph never worth it where upstream replays."""
    given, expected = case["input"], case["expected"]
    budgets = sorted(given["token_budgets"])
    graphs = Graphs(tuple(Graph(b, 10**9, 10**9) for b in budgets), given["max_items_per_batch"], 1)
    costs = Costs(tuple(map(float, budgets)), ((0, 10.0**9), (10**9, 2 * 10.0**9)))
    items = [EncoderItem(tokens, 1, 1) for tokens in given["item_tokens"]]
    packs = pack(items, graphs, costs)
    hits = sum(len(p.items) for p in packs if p.graph is not None)
    assert hits == expected["graph_hits"] or 0 in given["item_tokens"]
    computed, _ = captured_tokens(packs, graphs)
    assert computed <= sum(batch["budget"] or 0 for batch in expected["batches"])


def test_a_full_call_runs_without_graphs_and_a_lone_video_with() -> None:
    budgets = [400, 2400]
    graphs, costs = graphs_of(budgets, sequences=1000, max_items=100), token_costs(budgets, always=False)
    video = EncoderItem(392, 8, 196)
    assert [p.graph for p in pack([video], graphs, costs)] == [0]
    assert [p.graph for p in pack([video] * 6, graphs, costs)] == [1]
    assert [p.graph for p in pack([video] * 10, graphs, costs)] == [None], "3920 tokens, where launches no longer count"


def test_what_attention_was_not_captured_for_runs_without() -> None:
    budgets = [1000]
    costs = token_costs(budgets, always=True)
    graphs = graphs_of(budgets, sequences=16, longest=400)
    assert pack([EncoderItem(900, 16, 400)], graphs, costs)[0].graph == 0
    assert pack([EncoderItem(900, 17, 400)], graphs, costs)[0].graph is None, "vllm#43403: more sequences"
    assert pack([EncoderItem(900, 16, 401)], graphs, costs)[0].graph is None, "a longer sequence"
    packs = pack([EncoderItem(400, 10, 40)] * 2, graphs, costs)
    assert [p.graph for p in packs] == [0, 0], "apart they fit"


def test_long_calls_are_divided_in_stretches() -> None:
    items = [EncoderItem(10 + n % 7, 1, 40) for n in range(3 * MOST_ITEMS)]
    packs = pack(items, graphs_of([64, 128]), token_costs([64, 128], always=True))
    assert sorted(i for p in packs for i in p.items) == list(range(len(items)))


def test_costs_between_measured_points() -> None:
    costs = Costs((), ((100, 5.0), (300, 9.0)))
    assert [costs.without_graph(n) for n in (10, 100, 200, 300, 600)] == [5.0, 5.0, 7.0, 9.0, 18.0]
