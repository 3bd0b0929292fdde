from hypothesis import given
from hypothesis import strategies as st

from vidpipe.plan.cost import cut, shard_count, share_out, working_order


@given(st.lists(st.integers(0, 10**9), max_size=60), st.integers(1, 20))
def test_stretches_hold_every_item_once_and_in_order(costs: list[int], shards: int) -> None:
    stretches = cut(costs, shards)
    assert [place for stretch in stretches for place in stretch] == list(range(len(costs)))
    assert all(stretches) and len(stretches) <= shards
    assert len(stretches) == min(shards, len(costs))


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=200), st.integers(1, 20))
def test_no_stretch_is_above_twice_the_mean_by_more_than_its_last_item(costs: list[int], shards: int) -> None:
    for stretch in cut(costs, shards)[:-1]:
        assert sum(costs[place] for place in stretch[:-1]) < 2 * sum(costs) / shards


def test_stretches_become_smaller() -> None:
    sizes = [len(stretch) for stretch in cut([1] * 1000, 100)]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] == 20 and sizes[-1] == 1


@given(st.lists(st.integers(0, 10**9), max_size=100))
def test_shards_hold_every_clip_once_and_the_costliest_comes_first(costs: list[int]) -> None:
    shards = share_out(costs)
    totals = [sum(costs[place] for place in shard) for shard in shards]
    assert sorted(place for shard in shards for place in shard) == list(range(len(costs)))
    assert totals == sorted(totals, reverse=True)


def test_few_clips_make_few_shards() -> None:
    assert [shard_count(n) for n in (0, 1, 8, 9, 100, 10**6)] == [1, 1, 1, 9, 20, 2048]


def test_a_few_cheap_clips_then_the_longest_first() -> None:
    assert working_order([5, 1, 9, 3, 7, 3]) == [1, 3, 2, 4, 0, 5]
    assert working_order([2, 1]) == [1, 0] and working_order([]) == []
