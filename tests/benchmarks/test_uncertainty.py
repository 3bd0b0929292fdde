"""Standard errors against formulas written out by hand, against scipy, and against resampling."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from vidpipe.benchmarks.uncertainty import (
    DIFFERENCES,
    bootstrap,
    clustered_stderr,
    estimate,
    mcnemar_exact,
    mean_stderr,
    paired_t,
    wilson,
)


def plain(scores: list[float], clips: list[int]) -> tuple[np.ndarray, ...]:
    rows = len(scores)
    return np.array(scores, float), np.full(rows, 1 / rows), np.zeros(rows, np.int64), np.array(clips)


@given(st.lists(st.sampled_from([0.0, 0.3, 1.0]), min_size=2, max_size=30))
def test_one_row_a_clip_is_the_plain_standard_error(scores: list[float]) -> None:
    found = estimate(*plain(scores, list(range(len(scores)))))
    assert found.stderr == pytest.approx(mean_stderr(scores)) and found.value == pytest.approx(np.mean(scores))


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 4)), min_size=2, max_size=40))
def test_clusters_agree_with_the_published_formula_up_to_the_small_sample_factor(
    rows: list[tuple[float, int]],
) -> None:
    scores, names = [score for score, _ in rows], [clip for _, clip in rows]
    clips = np.unique(names, return_inverse=True)[1].tolist()
    count, n = len(set(clips)), len(scores)
    found = estimate(*plain(scores, clips))
    if count == 1:
        assert found.stderr is None and found.interval is None
        return
    assert found.stderr is not None
    squares = sum((score - np.mean(scores)) ** 2 for score in scores)
    published = clustered_stderr(scores, clips) ** 2 - squares / n / (n - 1) + squares / n**2
    assert found.stderr**2 * (count - 1) / count == pytest.approx(published, abs=1e-12)


def test_a_macro_average_weighs_its_strata_and_not_their_rows() -> None:
    scores = np.array([1.0, 1, 1, 1, 0, 0])
    weights = np.array([1 / 8] * 4 + [1 / 4] * 2)
    strata, clips = np.array([0] * 4 + [1] * 2), np.arange(6)
    assert estimate(scores, weights, strata, clips).value == pytest.approx(0.5)
    assert estimate(scores, weights, strata, clips).stderr == 0  # no spread within a stratum


def test_the_bootstrap_agrees_with_linearisation() -> None:
    generator = np.random.default_rng(1)
    clips = np.repeat(np.arange(150), 6)
    strata = np.tile([0, 0, 0, 0, 1, 1], 150)
    hard = np.repeat(generator.random(150), 6)
    scores = (generator.random(900) < hard).astype(float)
    weights = np.where(strata == 0, 0.5 / 600, 0.5 / 300)
    found = estimate(scores, weights, strata, clips)
    low, high = bootstrap(scores, weights, strata, clips)
    assert found.interval is not None and (low, high) == bootstrap(scores, weights, strata, clips)
    assert (low, high) == pytest.approx(found.interval, abs=0.01)


def test_a_stratum_that_a_draw_of_the_bootstrap_misses_leaves_its_weight_to_the_others() -> None:
    scores, weights = np.array([1.0, 0, 1, 1, 1]), np.array([1 / 8, 1 / 2, 1 / 8, 1 / 8, 1 / 8])
    strata, clips = np.array([0, 1, 0, 0, 0]), np.array([0, 0, 1, 2, 3])
    assert bootstrap(scores, weights, strata, clips) == (0.5, 1.0)  # with a row of the second stratum, and without


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=30))
def test_paired_t_agrees_with_scipy(pairs: list[tuple[float, float]]) -> None:
    a, b = zip(*pairs, strict=True)
    found = paired_t(a, b)
    if found.se_diff < 1e-6:
        return
    expected = stats.ttest_rel(a, b)
    assert found.t_stat == pytest.approx(expected.statistic, rel=1e-6)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12)
    reach = expected.confidence_interval()
    assert (found.ci_lower, found.ci_upper) == pytest.approx((reach.low, reach.high), rel=1e-6, abs=1e-9)
    assert found.n == len(pairs)


@pytest.mark.parametrize(("a", "b", "t_stat", "p_value"), [(1, 0, math.inf, 0), (0, 1, -math.inf, 0), (1, 1, 0, 1)])
def test_without_spread_a_difference_is_certain(a: int, b: int, t_stat: float, p_value: float) -> None:
    found = paired_t([a, a], [b, b])
    assert (found.mean_diff, found.se_diff, found.t_stat, found.p_value) == (a - b, 0, t_stat, p_value)


def test_a_stratum_that_a_draw_misses_leaves_its_weight_to_the_others() -> None:
    scores, weights, numbers = np.array([1.0, 0.0]), np.array([0.5, 0.5]), np.array([0, 1])
    assert bootstrap(scores, weights, numbers, numbers) == (0, 1)


def test_mcnemar() -> None:
    assert mcnemar_exact(0, 0) == 1 and mcnemar_exact(3, 3) == 1
    assert mcnemar_exact(5, 0) == pytest.approx(2 / 32) == mcnemar_exact(0, 5)
    assert mcnemar_exact(5, 3) == pytest.approx(2 * (1 + 8 + 28 + 56) / 2**8) and mcnemar_exact(3, 3) == 1


def test_one_row_tells_nothing() -> None:
    assert math.isnan(paired_t([1], [0]).p_value) and math.isnan(clustered_stderr([1], [0]))
    assert estimate(*plain([1, 0], [3, 3])).interval is None
    none = np.empty(0), np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64)
    assert estimate(*none).stderr is None


def test_an_interval_ends_where_scores_do_and_the_error_stays() -> None:
    few = plain([1, 1, 1, 0], [0, 1, 2, 3])
    found = estimate(*few)
    assert (found.interval, found.stderr) == ((pytest.approx(0.26, abs=1e-4), 1), pytest.approx(0.25))
    found = estimate(*plain([0, 0, 0, 1], [0, 1, 2, 3]))
    assert found.interval == (0, pytest.approx(0.74, abs=1e-4))
    gain = estimate(*plain([1, 1, 0, -1], [0, 1, 2, 3]), DIFFERENCES)
    assert gain.interval == (pytest.approx(-0.688, abs=1e-3), 1), "a difference may be negative"


@given(st.integers(1, 500).flatmap(lambda rows: st.tuples(st.integers(0, rows), st.just(rows))))
def test_wilsons_interval_agrees_with_scipy(counts: tuple[int, int]) -> None:
    expected = stats.binomtest(*counts).proportion_ci(method="wilson")
    assert wilson(*counts) == pytest.approx((expected.low, expected.high), abs=1e-9)
