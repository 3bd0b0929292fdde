"""Graphs proposed for a plan: they cover it, pad little, and keep to their limits."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vidpipe.plan.encoder_graphs import GraphLimits, captured_tokens
from vidpipe.plan.graph_memory import encoder_memory
from vidpipe.plan.graph_packing import EncoderItem, pack
from vidpipe.plan.graph_proposal import encoder_item, expected_calls, graphs_for, propose, token_costs

CALL_TOKENS = 16_384
QWEN3_VL_2B = {
    "vision_config": {
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_heads": 16,
        "patch_size": 16,
        "temporal_patch_size": 2,
        "spatial_merge_size": 2,
        "out_hidden_size": 2048,
        "deepstack_visual_indexes": [5, 11, 17],
    },
    "text_config": {"hidden_size": 2048},
}
MEMORY = encoder_memory(QWEN3_VL_2B, 4 * 2**30)
SHORT = encoder_item((8, 14, 14), 2)
LONG = encoder_item((64, 28, 26), 2)


def mixed(count: int, seed: int = 0) -> list[EncoderItem]:
    """Videos of 2 to 64 pairs at sizes of 10 to 40 patches a side: a size seldom comes twice."""
    draw = random.Random(seed)
    sides = range(10, 41, 2)
    return [encoder_item((draw.randint(2, 64), draw.choice(sides), draw.choice(sides)), 2) for _ in range(count)]


def test_memory_is_near_what_was_measured() -> None:
    """3.5 GiB on an H200 for these budgets."""
    assert 3.0 < MEMORY.bytes_of((2048, 4096, 8192, 16384)) / 2**30 < 3.7


@pytest.mark.parametrize("always", [False, True])
def test_a_mixed_workload_is_padded_little(always: bool) -> None:
    found = propose(mixed(300), step_tokens=CALL_TOKENS, memory=MEMORY, always=always)
    assert len(found.graphs.graphs) <= 16 and found.memory_bytes <= MEMORY.limit_bytes
    assert found.padding.share <= 0.10 < found.default_padding.share
    assert found.padding.captured_tokens > 0


def test_other_videos_than_the_planned_ones_are_padded_little_too() -> None:
    planned, seen = mixed(300), mixed(300, seed=1)
    found = propose(planned, step_tokens=CALL_TOKENS, memory=MEMORY, always=True)
    costs = token_costs([graph.tokens for graph in found.graphs.graphs], always=True)
    computed = asked = 0
    for call in expected_calls(seen, CALL_TOKENS):
        for part in pack(call, found.graphs, costs):
            if part.graph is not None:
                computed, asked = computed + found.graphs.graphs[part.graph].tokens, asked + part.tokens
    assert 1 - asked / computed <= 0.12


def test_graphs_for_lone_short_clips_none_for_long_ones() -> None:
    short = propose([SHORT] * 50, step_tokens=CALL_TOKENS, memory=MEMORY)
    assert short.graphs.graphs[0].tokens == SHORT.tokens and short.padding.share == 0
    assert propose([LONG] * 50, step_tokens=CALL_TOKENS, memory=MEMORY).graphs.graphs == ()
    wanted = propose([LONG] * 50, step_tokens=CALL_TOKENS, memory=MEMORY, always=True)
    assert [graph.tokens for graph in wanted.graphs.graphs] == [LONG.tokens]


@settings(max_examples=25)
@given(
    st.lists(
        st.builds(EncoderItem, st.integers(4, 4000), st.integers(1, 300), st.integers(4, 2000)), min_size=1, max_size=12
    ),
    st.booleans(),
)
def test_no_batch_of_the_plan_is_above_a_limit(items: list[EncoderItem], always: bool) -> None:
    """The packer's overrun cannot happen: whatever tokens and items let together, sequences let too."""
    found = propose(items, step_tokens=4096, memory=MEMORY, always=always)
    assert found.memory_bytes <= MEMORY.limit_bytes
    graphs = found.graphs
    for graph in graphs.graphs:
        assert graphs.max_items <= graph.tokens
        group: list[EncoderItem] = []
        by_density = sorted(items, key=lambda item: -item.sequences / item.tokens)
        for item in [item for item in by_density for _ in range(graphs.max_items)]:
            if sum(member.tokens for member in group) + item.tokens <= graph.tokens and len(group) < graphs.max_items:
                group.append(item)
        assert sum(item.sequences for item in group) <= graph.sequences
        assert all(item.patches_per_sequence <= graph.patches_per_sequence for item in group)


def test_nothing_planned_nothing_captured() -> None:
    found = propose([], step_tokens=4096, memory=MEMORY)
    assert found.graphs.graphs == () and found.memory_bytes == 0 and found.padding.share == 0
    assert graphs_for([], [], 4096).max_items == 0


@pytest.mark.parametrize(
    ("budget", "items", "steps", "captured"),
    [(64, 8, 128, 128), (64, 8, 256, 256), (300, 8, 128, 384), (700, 8, 256, 768), (3000, 8, 128, 3072)],
)
def test_rows_of_the_upstream_capture_grid(budget: int, items: int, steps: int, captured: int) -> None:
    assert captured_tokens(budget, GraphLimits((budget,), items, steps)) == captured
