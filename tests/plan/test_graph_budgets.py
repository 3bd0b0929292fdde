"""Budgets by dynamic programming: never worse than any other choice, within number and memory."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from vidpipe.plan.graph_budgets import MOST_SIZES, Memory, choose_budgets

SMALL = Memory(1, 0, 100)
AMPLE = Memory(1, 0, 10**9)


def expected_cost(batches: dict[int, float], budgets: tuple[int, ...], floor: int) -> float:
    total = 0.0
    for tokens, weight in batches.items():
        choices = [float(budget) for budget in budgets if budget >= tokens] + [float(max(tokens, floor))]
        total += weight * min(choices)
    return total


@given(
    st.dictionaries(st.integers(1, 40), st.integers(1, 40).map(lambda n: n / 8), min_size=1, max_size=7),
    st.integers(0, 3),
    st.integers(1, 60),
    st.integers(10, 100),
)
def test_no_choice_costs_less(batches: dict[int, float], most: int, floor: int, limit: int) -> None:
    memory = Memory(1, 0, limit)
    found = choose_budgets(batches, most=most, memory=memory, replay=float, without=lambda n: float(max(n, floor)))
    assert len(found) <= most and sum(found) <= limit and list(found) == sorted(set(found))
    every = (
        budgets
        for count in range(most + 1)
        for budgets in itertools.combinations(sorted(batches), count)
        if sum(budgets) <= limit
    )
    least = min(expected_cost(batches, budgets, floor) for budgets in every)
    assert abs(expected_cost(batches, found, floor) - least) < 1e-6 * least


@given(st.dictionaries(st.integers(1, 9000), st.integers(1, 5).map(float), min_size=1, max_size=60))
def test_never_more_padding_than_powers_of_two(batches: dict[int, float]) -> None:
    powers = tuple(64 * 2**n for n in range(9))
    found = choose_budgets(batches, most=9, memory=AMPLE, replay=float, without=lambda n: 10.0 * n + 10_000)
    assert expected_cost(batches, found, 10**9) <= expected_cost(batches, powers, 10**9)


def test_memory_and_its_price_count() -> None:
    batches = {10: 1.0, 50: 1.0, 90: 1.0}

    def chosen(memory: Memory, byte_price: float = 0.0) -> tuple[int, ...]:
        return choose_budgets(
            batches, most=3, memory=memory, replay=float, without=lambda n: float(n + 1000), byte_price=byte_price
        )

    assert chosen(AMPLE) == (10, 50, 90)
    assert chosen(SMALL) == (10, 90)
    assert chosen(Memory(1, 1, 150)) == (10, 50), "largest counts twice"
    assert chosen(AMPLE, byte_price=15.0) == (90,), "10 would save 80 and cost 150"
    assert chosen(Memory(1, 0, 5)) == ()


def test_few_sizes_are_taken_as_they_are() -> None:
    batches = {1: 1.0, 2: 1.0, 4000: 1.0}
    assert choose_budgets(batches, most=3, memory=AMPLE, replay=float, without=lambda n: n + 1000.0) == (1, 2, 4000)


def test_many_sizes_are_rounded_up() -> None:
    batches = dict.fromkeys(range(1, 4 * MOST_SIZES), 1.0)
    found = choose_budgets(batches, most=16, memory=AMPLE, replay=float, without=lambda n: 1e9)
    assert found[-1] == max(batches) and len(found) == 16
    padding = sum(min(b for b in found if b >= n) - n for n in batches) / sum(batches)
    assert padding < 1.2 / 16
