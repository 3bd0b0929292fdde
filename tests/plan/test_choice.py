from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from vidpipe.plan.choice import Pace, choose, may_outlast

speeds = st.none() | st.floats(0.01, 100)
paces = st.builds(Pace, speeds, st.integers(0, 10**6))
falling = st.lists(st.integers(0, 10**6), min_size=1, max_size=30).map(lambda costs: sorted(costs, reverse=True))
MEAN = 100.0
COSTS = [5000, 3000, 200, 150, 100, 50, 40, 30, 20, 10]
"""Two that may outlast the rest, then usual ones."""


@given(falling, paces, st.lists(paces, max_size=8))
def test_there_is_always_something_to_take(costs: list[int], own: Pace, others: list[Pace]) -> None:
    place = choose(costs, MEAN, own, others)
    assert 0 <= place < len(costs)
    if not may_outlast(costs[0], MEAN):
        assert place == 0, "the costliest first"
    elif own.cost_per_s is None and not may_outlast(costs[-1], MEAN):
        assert not may_outlast(costs[place], MEAN), "whoever does not know its speed leaves those that matter"
    elif own.cost_per_s is not None and not others:
        assert place == 0, "there is nobody to leave it to"


@given(falling, st.floats(0.01, 100), st.integers(0, 10**4), st.lists(paces, max_size=6))
def test_who_would_finish_the_costliest_first_takes_it(
    costs: list[int], speed: float, held: int, others: list[Pace]
) -> None:
    own = Pace(speed, held)
    known = [replace(other, cost_per_s=other.cost_per_s or 1.0) for other in others]
    ends = [one.held / (one.cost_per_s or 0) + costs[0] / (one.cost_per_s or 0) for one in (own, *known)]
    if may_outlast(costs[0], MEAN) and len(costs) > 1:
        assert (choose(costs, MEAN, own, known) == 0) == (ends[0] <= min(ends))


def test_a_slow_worker_leaves_each_to_a_fast_one() -> None:
    slow, fast = Pace(1.0, 0), Pace(10.0, 100)
    assert choose(COSTS, MEAN, slow, [fast]) == 2, "80 s later the fast one would have done both"
    assert choose(COSTS, MEAN, replace(slow, cost_per_s=6.0), [fast]) == 1
    assert choose(COSTS, MEAN, fast, [slow]) == 0
    assert choose([5000], MEAN, slow, [fast]) == 0, "the fast one may never come"


def test_until_most_speeds_are_known_small_usual_ones() -> None:
    unknown, known = Pace(None, 50), Pace(1.0, 50)
    assert choose(COSTS, MEAN, unknown, []) == 8
    assert choose(COSTS, MEAN, known, [unknown, unknown]) == 8
    assert choose(COSTS, MEAN, known, [unknown]) == 0
    assert choose([5000, 3000], MEAN, unknown, [known]) == 1
