"""How far a score can be trusted: standard errors over clips, intervals, paired differences.

Questions about one clip share its difficulties, so the clip and not the row is what a
benchmark samples. Every headline here is a sum of row scores with fixed weights, and its
standard error comes from how the weighted deviations add up over clips.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Z_95 = NormalDist().inv_cdf(0.975)
Z_POWER = NormalDist().inv_cdf(0.8)
BOOTSTRAP_DRAWS = 2000
SCORES = (0.0, 1.0)
"""The least and the most that a score can be."""
DIFFERENCES = (-1.0, 1.0)
"""The same of a difference of two scores."""


@dataclass(frozen=True)
class Estimate:
    """A score and how sure it is."""

    value: float
    rows: int
    clips: int
    stderr: float | None
    """None with fewer than two clips: then nothing is known of how clips differ."""
    bounds: tuple[float, float] = SCORES
    """The least and the most that the value could be, were every row known."""

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval, by the normal approximation, as far as it lies within the bounds.

        The approximation knows nothing of them, and what lies beyond is no score. `stderr` stays as it is.
        """
        if self.stderr is None:
            return None
        low, high = self.bounds
        reach = Z_95 * self.stderr
        return min(max(self.value - reach, low), high), max(min(self.value + reach, high), low)


def wilson(right: int, rows: int) -> tuple[float, float]:
    """95 % interval of a share of right answers, were all rows independent; inside 0 and 1 also where all are right.

    Source: Wilson 1927, Journal of the American Statistical Association 22, 209-212.
    """
    share, squared = right / rows, Z_95**2
    middle = (share + squared / (2 * rows)) / (1 + squared / rows)
    reach = Z_95 / (1 + squared / rows) * math.sqrt(share * (1 - share) / rows + squared / (4 * rows**2))
    return max(0.0, middle - reach), min(1.0, middle + reach)


def clips_to_see(difference: float, found: Estimate) -> int | None:
    """Clips with which a difference of that size shows in four of five comparisons, at the 5 % level.

    From the standard error of a difference over `found.clips` clips, which falls with the square root of their number
    (Miller, arXiv:2411.00640, section 5). Two runs whose scores on a clip correlate by a half have the
    difference's standard error equal to one run's own, so that a single run's serves for planning.
    None where nothing is known of how clips differ.
    """
    if found.stderr is None:
        return None
    return max(2, math.ceil(found.clips * ((Z_95 + Z_POWER) * found.stderr / difference) ** 2))


def estimate(
    scores: Floats, weights: Floats, strata: Codes, clips: Codes, bounds: tuple[float, float] = SCORES
) -> Estimate:
    """Weighted score with its standard error by linearisation over clips.

    With C clips, `SE^2 = C/(C-1) * sum over clips of (sum over its rows of w (s - mean of the row's stratum))^2`:
    the usual ultimate-cluster variance of a sum of stratum means (Binder 1983; Miller,
    arXiv:2411.00640, section 2.2, for one mean). It holds for macro averages and needs no random numbers.

    Args:
        scores: Row scores.
        weights: Row weights, those of a stratum equal; they sum to 1.
        strata: For each row the number of the mean it belongs to, from 0.
        clips: For each row the number of its clip, from 0.
        bounds: The least and the most that a row can score.
    """
    means = np.bincount(strata, scores) / np.maximum(np.bincount(strata), 1)
    sums = np.bincount(clips, weights * (scores - means[strata]))
    count = len(np.unique(clips))
    stderr = math.sqrt(count / (count - 1) * float(np.sum(sums**2))) if count > 1 else None
    return Estimate(float(np.dot(weights, scores)), len(scores), count, stderr, bounds)


def bootstrap(
    scores: Floats, weights: Floats, strata: Codes, clips: Codes, draws: int = BOOTSTRAP_DRAWS, seed: int = 0
) -> tuple[float, float]:
    """95 % percentile interval from clips drawn with replacement; for scores that are no smooth sum.

    Each draw's stratum means are taken anew over the rows it drew; a stratum that a draw misses
    leaves that draw's weight to the others.

    Args:
        scores: As for `estimate`, and so on.
        weights: Row weights.
        strata: Number of each row's mean.
        clips: Number of each row's clip.
        draws: How many.
        seed: Of the random numbers; the same seed gives the same interval.
    """
    clip_count, strata_count = int(clips.max()) + 1, int(strata.max()) + 1
    cell = clips * strata_count + strata
    shape = (clip_count, strata_count)
    sums = np.bincount(cell, scores, clip_count * strata_count).reshape(shape)
    counts = np.bincount(cell, minlength=clip_count * strata_count).reshape(shape)
    stratum_weight = np.bincount(strata, weights)
    generator = np.random.default_rng(seed)
    values = np.empty(draws)
    for draw in range(draws):
        times = np.bincount(generator.integers(clip_count, size=clip_count), minlength=clip_count)
        drawn_counts = times @ counts
        there = drawn_counts > 0
        means = (times @ sums)[there] / drawn_counts[there]
        values[draw] = np.dot(means, stratum_weight[there]) / stratum_weight[there].sum()
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def mean_stderr(scores: Sequence[float]) -> float:
    """Standard error of a plain mean of independent rows, sd / sqrt(n).

    Raises:
        ZeroDivisionError: fewer than two rows.
    """
    mean = sum(scores) / len(scores)
    return math.sqrt(sum((score - mean) ** 2 for score in scores) / (len(scores) - 1)) / math.sqrt(len(scores))


def clustered_stderr(scores: Sequence[float], clusters: Sequence[object]) -> float:
    """Standard error of a plain mean by Miller, arXiv:2411.00640, equation 4; NaN for fewer than two rows.

    Equal to lmms-eval @75571cf, lmms_eval/api/metrics.py, clustered_stderr; differs from `estimate`
    by the small-sample factor.
    """
    rows = len(scores)
    if rows < 2:
        return math.nan
    mean = sum(scores) / rows
    sums: dict[object, float] = {}
    for score, cluster in zip(scores, clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + score - mean
    squares = sum((score - mean) ** 2 for score in scores)
    between = (sum(value * value for value in sums.values()) - squares) / (rows * rows)
    return math.sqrt(squares / (rows - 1) / rows + between)


@dataclass(frozen=True)
class Paired:
    """Difference of two runs on the same rows, by Student's paired t."""

    mean_diff: float
    se_diff: float
    ci_lower: float
    ci_upper: float
    t_stat: float
    p_value: float
    n: int


def paired_t(current: Sequence[float], baseline: Sequence[float]) -> Paired:
    """`current` minus `baseline`, rows taken as independent.

    Equal to lmms-eval @75571cf, lmms_eval/api/metrics.py, paired_ttest: without any spread the
    difference is taken as certain.

    Raises:
        ValueError: the runs have different numbers of rows.
    """
    from scipy.special import stdtr, stdtrit

    differences = [a - b for a, b in zip(current, baseline, strict=True)]
    rows = len(differences)
    if rows < 2:
        return Paired(math.nan, math.nan, math.nan, math.nan, math.nan, math.nan, rows)
    difference, stderr = sum(differences) / rows, mean_stderr(differences)
    if stderr:
        t_stat = difference / stderr
        p_value = 2 * (1 - float(stdtr(rows - 1, abs(t_stat))))
    else:
        t_stat = math.copysign(math.inf, difference) if difference else 0.0
        p_value = 0.0 if difference else 1.0
    reach = float(stdtrit(rows - 1, 0.975)) * stderr
    return Paired(difference, stderr, difference - reach, difference + reach, t_stat, p_value, rows)


def mcnemar_exact(wins: int, losses: int) -> float:
    """Two-sided p value of McNemar's exact test: of the rows that differ, do both runs win as often?"""
    from scipy.special import bdtr

    if wins + losses == 0:
        return 1.0
    return min(1.0, 2 * float(bdtr(min(wins, losses), wins + losses, 0.5)))
