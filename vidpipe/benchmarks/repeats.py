"""What many samples of the same questions say about a model's steadiness, and what a planned run could show.

Equal to EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/api/metrics.py (functions of the
same meaning), after Miller, "Adding Error Bars to Evals", arXiv:2411.00640.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist, mean, variance
from typing import Any

Samples = Sequence[Sequence[float]]
"""For each question the scores of its samples."""


def expected_accuracy(samples: Samples) -> float:
    """Mean over all samples of all questions."""
    scores = [score for question in samples for score in question]
    return sum(scores) / len(scores) if scores else math.nan


def consensus_accuracy(samples: Samples) -> float:
    """Share of questions that more than half of the samples answer rightly."""
    return sum(sum(scores) > len(scores) / 2 for scores in samples) / len(samples) if samples else math.nan


def internal_variance(samples: Samples) -> float:
    """Mean sample variance within a question, over questions with two samples or more."""
    variances = [variance(map(float, scores)) for scores in samples if len(scores) > 1]
    return mean(variances) if variances else math.nan


def consistency_rate(samples: Samples) -> float:
    """Share of questions whose samples all score the same."""
    return sum(len(set(scores)) == 1 for scores in samples) / len(samples) if samples else math.nan


def pooled_stderr(stderrs: Sequence[float], sizes: Sequence[int]) -> float:
    """Standard error of the mean over tasks put together, from each task's own."""
    pooled = sum((size - 1) * stderr**2 * size for size, stderr in zip(sizes, stderrs, strict=True))
    return math.sqrt(pooled / (sum(sizes) - len(sizes)) / sum(sizes))


def power_analysis(
    effect_size: float,
    std_a: float | None = None,
    std_b: float | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
    correlation: float = 0.5,
    current_n: int | None = None,
) -> dict[str, Any]:
    """How many questions a paired comparison needs to see `effect_size`.

    Args:
        effect_size: Difference to be seen, on the scale of the scores.
        std_a: Standard deviation of a row's score under the first model; the other's, or 0.5, when left out.
        std_b: The same for the second.
        alpha: Two-sided level.
        power: Chance to see the difference.
        correlation: Of the two models' scores on a row.
        current_n: Also tell what so many questions can show.
    """
    std_a, std_b = std_a or std_b or 0.5, std_b or std_a or 0.5
    reach = NormalDist().inv_cdf(1 - alpha / 2) + NormalDist().inv_cdf(power)
    spread = math.sqrt(std_a**2 + std_b**2 - 2 * correlation * std_a * std_b)
    result: dict[str, Any] = {
        "min_n": math.ceil((reach * spread / effect_size) ** 2),
        "effect_size": effect_size,
        "std_a": std_a,
        "std_b": std_b,
        "alpha": alpha,
        "power": power,
        "correlation": correlation,
    }
    if current_n is not None:
        z = effect_size / spread * math.sqrt(current_n) - NormalDist().inv_cdf(1 - alpha / 2)
        result["current_n"] = current_n
        result["current_power"] = round(NormalDist().cdf(z), 4)
        result["min_detectable_effect"] = round(reach * spread / math.sqrt(current_n), 4)
    return result
