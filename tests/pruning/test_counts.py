from hypothesis import given
from hypothesis import strategies as st

from vidpipe.pruning.counts import COUNTS, account, evs_count, positions_taken, vidcom2_count

rates = st.floats(0.01, 0.99)


@given(st.integers(1, 3000), st.integers(1, 400), rates)
def test_counts_stay_within_the_clip(tokens: int, steps: int, rate: float) -> None:
    for method, least in (("evs", tokens), ("vidcom2", steps)):
        found = account(tokens, steps, method, rate)
        assert least <= found.kept <= found.asked == tokens * steps


def test_float_arithmetic_is_literal() -> None:
    """1 - 0.9 is a little less than a tenth, so 9 of 100 stay; a prompt sized for 10 would not fit the mask."""
    assert evs_count(5, 20, 0.9) == 9
    assert vidcom2_count(5, 20, 0.9) == 20  # one for each step
    assert vidcom2_count(20, 5, 0.9) == 9


def test_without_a_method_all_are_kept() -> None:
    assert account(16, 6, None, 0.5).kept == 96
    assert set(COUNTS) == {"evs", "vidcom2"}


def test_a_step_takes_the_longer_side_of_its_grid() -> None:
    assert positions_taken(100, 30, 4, 3, 5) == positions_taken(100, 30, 4, 5, 3) == 70 + 4 * 5
