"""Two runs over the same rows: the difference in score, row by row, and how sure it is. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidpipe.benchmarks.predictions import Predictions, same_questions
from vidpipe.benchmarks.profile import Profile
from vidpipe.benchmarks.score import ScoredRows, score_rows
from vidpipe.benchmarks.uncertainty import DIFFERENCES, Estimate, estimate, mcnemar_exact, paired_t
from vidpipe.errors import RecipeError


@dataclass(frozen=True)
class Difference:
    """Score of B minus score of A over the rows that both have."""

    name: str
    score_a: float
    score_b: float
    difference: Estimate
    wins: int
    """Rows on which B scores higher."""
    losses: int
    """Rows on which A scores higher."""
    mcnemar_p: float | None
    """McNemar's exact test; None where a row scored between 0 and 1."""


@dataclass(frozen=True)
class Comparison:
    """Two runs under one profile."""

    profile: Profile
    matched: int
    only_a: int
    only_b: int
    overall: Difference
    groups: tuple[Difference, ...]
    types: tuple[Difference, ...]
    """Each question type."""
    paired_t_p: float
    """Student's paired t over rows taken as independent, as lmms-eval prints it."""
    won: tuple[str, ...]
    """Ids on which B scores higher."""
    lost: tuple[str, ...]


def compare(
    a: Predictions, b: Predictions, profile: Profile, prepare: Callable[[str], str] | None = None
) -> Comparison:
    """Join on the id and take differences; `prepare` is a named step before scoring, of both runs.

    The standard error is that of the differences, clustered by clip: rows that both runs find
    hard take no part in it, which is why small differences can be seen at all.

    Raises:
        RecipeError: the runs asked different questions, or have no row in common.
    """
    of_b = {row.id: row for row in b.rows}
    both = [(row, of_b[row.id]) for row in a.rows if row.id in of_b]
    for mine, theirs in both:
        if not same_questions(mine, theirs):
            raise RecipeError(
                f"row {mine.id!r} expects {mine.question.answer!r} ({mine.question.question_type}) in {a.source} and "
                f"{theirs.question.answer!r} ({theirs.question.question_type}) in {b.source}: other questions."
            )
    if not both:
        raise RecipeError(f"{a.source} and {b.source} have no row in common. Compare runs of one manifest.")
    found_a = score_rows([row for row, _ in both], profile, prepare)
    found_b = score_rows([row for _, row in both], profile, prepare)
    types = np.array([row.question.question_type for row in found_a.rows])
    groups = {name: np.isin(types, kinds) for name, kinds in profile.groups.items()}
    of_type = {str(name): types == name for name in np.unique(types) if name}
    everything = np.ones(len(types), bool)
    change = found_b.scores - found_a.scores
    ids = [row.id for row in found_a.rows]
    return Comparison(
        profile,
        len(both),
        len(a.rows) - len(both),
        len(b.rows) - len(both),
        _difference("overall", found_a, found_b, everything),
        tuple(_difference(name, found_a, found_b, mask) for name, mask in groups.items() if mask.any()),
        tuple(_difference(name, found_a, found_b, mask) for name, mask in of_type.items()),
        paired_t(found_b.scores.tolist(), found_a.scores.tolist()).p_value,
        tuple(ids[place] for place in np.flatnonzero(change > 0)),
        tuple(ids[place] for place in np.flatnonzero(change < 0)),
    )


def _difference(name: str, a: ScoredRows, b: ScoredRows, mask: NDArray[np.bool_]) -> Difference:
    weights = a.weights[mask] / a.weights[mask].sum()
    before, after = a.scores[mask], b.scores[mask]
    wins, losses = int((after > before).sum()), int((after < before).sum())
    decided = np.isin(np.concatenate([before, after]), (0.0, 1.0)).all()
    return Difference(
        name,
        float(np.dot(weights, before)),
        float(np.dot(weights, after)),
        estimate(after - before, weights, a.strata[mask], a.clips[mask], DIFFERENCES),
        wins,
        losses,
        mcnemar_exact(wins, losses) if decided else None,
    )
