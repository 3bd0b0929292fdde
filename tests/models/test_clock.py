"""Times that the engine is told: upstream's own numbers on constant-rate files, real ones elsewhere."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidpipe.models.clock import MICROSECONDS_PER_S, FrameClock, clock_of, vllm_metadata

rates = st.sampled_from(
    [Fraction(n) for n in (1, 5, 8, 24, 25, 30, 60, 240)]
    + [Fraction(1, 2)]
    + [Fraction(n, 1001) for n in (24000, 30000)]
)


def clock(indices: list[int], times_s: list[float], fps: float, **options: object) -> FrameClock:
    values = {"first_index": 0, "frames": 10**6, "fps": fps, "zero_s": 0.0, "time_base": "real", **options}
    return clock_of(indices, times_s, **values)  # type: ignore[arg-type]


@given(rates, st.lists(st.integers(0, 100_000), min_size=1, max_size=20), st.sampled_from([None, 1000]))
def test_constant_rate_files_get_their_own_indices(fps: Fraction, indices: list[int], ticks_per_s: int | None) -> None:
    exact = [index / fps for index in indices]
    times_s = [float(t if ticks_per_s is None else Fraction(round(t * ticks_per_s), ticks_per_s)) for t in exact]
    told = clock(indices, times_s, float(fps))
    assert told == FrameClock(tuple(indices), float(fps), 10**6)
    assert told.times_s == [index / float(fps) for index in indices], "as upstream divides"


@given(st.lists(st.floats(0, 1e5), min_size=2, max_size=20))
def test_other_files_get_microseconds(gaps_s: list[float]) -> None:
    times_s = sorted(gaps_s)
    told = clock(list(range(len(times_s))), times_s, 1000.0)
    assert told.times_s == pytest.approx(times_s, abs=1.0 / MICROSECONDS_PER_S + 1e-3)
    assert max(told.ticks) < told.total


def test_variable_rate_is_seconds_off_only_when_nominal() -> None:
    indices, times_s = [0, 5, 9], [0.0, 5.0, 9.0]
    assert clock(indices, times_s, 30.0).times_s == times_s
    assert clock(indices, times_s, 30.0, time_base="nominal").times_s == [0.0, 5 / 30, 9 / 30]


def test_a_window_is_told_from_its_start() -> None:
    indices, times_s = [10, 15], [1.25, 1.875]  # 8 fps, window from 1.2 s
    assert clock(indices, times_s, 8.0, first_index=10, zero_s=1.2).times_s == pytest.approx([0.05, 0.675])
    assert clock(indices, times_s, 8.0, first_index=10, zero_s=1.25) == FrameClock((0, 5), 8.0, 10**6)


def test_unknown_rate_is_never_nominal() -> None:
    assert clock([0, 1], [0.0, 0.5], 0.0, time_base="nominal").times_s == [0.0, 0.5]


def test_a_slow_rate_is_nominal_when_asked() -> None:
    assert clock([0, 1], [0.0, 1.0], 0.5, time_base="nominal").times_s == [0.0, 2.0]


def test_an_engine_is_told_the_length_in_seconds() -> None:
    assert vllm_metadata(FrameClock((0, 4), 8.0, 20))["duration"] == 2.5
