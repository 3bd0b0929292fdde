import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidpipe.plan.encoder_graphs import GraphLimits, captured_tokens, graph_limits, pack, too_long

BUDGETS = (64, 128, 256, 512, 1024)


@given(st.lists(st.integers(1, 2000), max_size=40), st.integers(1, 10))
def test_every_item_runs_once_within_the_limits(item_tokens: list[int], max_items: int) -> None:
    batches = pack(item_tokens, GraphLimits(BUDGETS, max_items, 0))
    assert sorted(item for batch in batches for item in batch.items) == list(range(len(item_tokens)))
    for batch in batches:
        assert batch.tokens == sum(item_tokens[item] for item in batch.items)
        assert len(batch.items) <= max_items
        if batch.budget is None:
            assert len(batch.items) == 1 and batch.tokens > BUDGETS[-1] and batch.padding == 0
        else:
            assert 0 <= batch.padding == batch.budget - batch.tokens
            assert all(budget < batch.tokens for budget in BUDGETS if budget < batch.budget)


def test_a_batch_closes_early_where_that_saves_tokens() -> None:
    batches = pack([60, 70, 600], GraphLimits(BUDGETS, 8, 0))
    assert [batch.items for batch in batches] == [(0,), (1, 2)]


def test_items_without_tokens_close_no_batch() -> None:
    assert [batch.items for batch in pack([0, 0, 5], GraphLimits(BUDGETS, 8, 0))] == [(0, 1, 2)]


@pytest.mark.parametrize(
    ("budget", "limits", "tokens"),
    [
        (64, GraphLimits(BUDGETS, 8, 0), 64),
        (65, GraphLimits(BUDGETS, 8, 0), 72),
        (100, GraphLimits(BUDGETS, 4, 16), 112),
        (112, GraphLimits(BUDGETS, 4, 16), 112),
        (114, GraphLimits(BUDGETS, 4, 8), 120),
    ],
)
def test_a_capture_rounds_up_items_and_their_steps(budget: int, limits: GraphLimits, tokens: int) -> None:
    assert captured_tokens(budget, limits) == tokens


def test_batches_that_crash_the_engine_are_told() -> None:
    """vllm#43403: a video of 64 small pairs fits the tokens of a graph, but not its attention borders."""
    limits = GraphLimits(BUDGETS, 4, 16)
    batches = pack([256, 300, 2000], limits)
    assert [batch.items for batch in too_long(batches, [64, 4, 500], limits)] == [(0,)]
    assert too_long(batches, [16, 4, 500], limits) == []  # what runs without a graph has no such limit


def test_what_the_engine_would_refuse_is_refused() -> None:
    common = {"model_steps_per_video": 4, "video_limit": 1}
    with pytest.raises(ValueError, match="200 items"):
        graph_limits(model_range=(64, 512), token_budgets=[128], max_items=200, **common)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no range"):
        graph_limits(model_range=(100, 64), **common)  # type: ignore[arg-type]


def test_no_videos_means_no_steps() -> None:
    limits = graph_limits(model_range=(64, 512), model_steps_per_video=4, video_limit=0)
    assert limits == GraphLimits((64, 128, 256, 512), 8, 0)
