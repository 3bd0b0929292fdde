from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vidpipe.video import clock

TIMES = st.lists(st.floats(-1e4, 1e4, allow_nan=False), min_size=1, max_size=40)


@given(TIMES)
def test_stated_times_are_kept(times: list[float]) -> None:
    assert np.array_equal(clock.fill_missing(np.array(times), 0.04), times)


@given(count=st.integers(3, 60), start=st.floats(-100, 100), step=st.floats(0.001, 10), data=st.data())
def test_steady_times_are_restored_from_any_two(count: int, start: float, step: float, data: st.DataObject) -> None:
    whole = start + step * np.arange(count)
    known = data.draw(st.sets(st.integers(0, count - 1), min_size=2))
    holes = np.where(np.isin(np.arange(count), list(known)), whole, np.nan)
    assert np.allclose(clock.fill_missing(holes, 99.0), whole, atol=1e-6)


def test_no_time_at_all_counts_from_zero() -> None:
    assert clock.fill_missing(np.full(3, np.nan), 0.04).tolist() == [0.0, 0.04, 0.08]


def test_one_time_is_the_anchor() -> None:
    filled = clock.fill_missing(np.array([np.nan, 5.0, np.nan]), 0.5)
    assert filled.tolist() == [4.5, 5.0, 5.5]


@given(TIMES, st.floats(0.001, 1))
def test_elapsed_starts_at_zero_and_never_goes_back(times: list[float], step: float) -> None:
    result = clock.elapsed(np.array(times), step)
    assert len(result) == len(times)
    assert result[0] == 0
    assert (np.diff(result) >= 0).all()


def test_elapsed_closes_a_jump_back_by_one_step() -> None:
    assert np.allclose(clock.elapsed(np.array([1.6, 1.7, 1.6, 1.7]), 0.1), [0, 0.1, 0.2, 0.3])


@given(st.integers(3, 300), st.sampled_from([23.976, 24, 25, 29.97, 30, 50, 59.94, 60]))
def test_rounding_to_the_clock_is_no_variable_rate(count: int, fps: float) -> None:
    ticks = np.round(np.arange(count) / fps * 1000)
    assert not clock.is_variable(ticks / 1000, 0.001, holes=False)


@given(st.integers(4, 100), st.integers(1, 90))
def test_one_long_hold_is_a_variable_rate(count: int, at: int) -> None:
    times = np.arange(count) / 25
    times[min(at, count - 1) :] += 2
    assert clock.is_variable(times, 1 / 90000, holes=False)


@given(st.sets(st.integers(0, 99), max_size=40))
def test_missing_frames_make_no_variable_rate(gone: set[int]) -> None:
    times = np.array([t / 25 for t in range(100) if t not in gone])
    assert not clock.is_variable(times, 0.001, holes=True)
