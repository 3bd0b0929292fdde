"""From replies to a table: every row counted once, every average with its count and its interval. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidpipe.benchmarks.predictions import Prediction, Predictions
from vidpipe.benchmarks.profile import Profile, Scored
from vidpipe.benchmarks.reasoning import is_cut_reasoning
from vidpipe.benchmarks.sets import in_sets
from vidpipe.benchmarks.uncertainty import Codes, Estimate, Floats, bootstrap, estimate
from vidpipe.errors import RecipeError
from vidpipe.wording import counted

Mask = NDArray[np.bool_]
NO_REPLY = Scored(0.0, parsed=False)


@dataclass(frozen=True)
class Line:
    """One line of a table."""

    name: str
    estimate: Estimate
    unparsed: int
    """Replies in which the profile found no answer; they count as wrong."""
    failed: int
    """Rows without a reply; they count as wrong."""


@dataclass(frozen=True)
class Table:
    """A run under one profile."""

    profile: Profile
    headline: Line
    groups: tuple[Line, ...]
    types: tuple[Line, ...]
    breakdowns: dict[str, tuple[Line, ...]]
    """Category -> plain means over its values."""
    missing_types: tuple[str, ...]
    """Question types of the profile without a single row."""
    missing_rows: int | None
    partial: bool
    """Whether rows or types are missing: the headline is then no result of the benchmark."""
    unscored: int
    """Rows without an expected answer."""
    cut: int
    """Replies that the token limit cut."""
    cut_reasoning: int
    """Of these, replies that end inside their reasoning, before any answer."""
    incomplete_sets: int
    """Sets with rows missing, which are no part of the score."""
    bootstrap_95: tuple[float, float] | None = None


@dataclass(frozen=True)
class ScoredRows:
    """Rows of one profile with their scores, and the weights that make the headline."""

    rows: list[Prediction]
    """Of a profile with sets: one for each set, its last row under the set's id."""
    scored: list[Scored]
    scores: Floats
    weights: Floats
    strata: Codes
    clips: Codes
    unparsed: Mask
    """Replies in which nothing was found."""
    failed: Mask
    """Rows without a reply."""
    incomplete_sets: int = 0


def numbered(values: Iterable[str]) -> tuple[list[str], Codes]:
    """The different texts, sorted, and for each value its place among them.

    As `numpy.unique` with its inverse, which sorts every value and takes seconds for a million texts.
    """
    values = list(values)
    places = {name: place for place, name in enumerate(sorted(set(values)))}
    return list(places), np.fromiter(map(places.__getitem__, values), np.int64, len(values))


def score_rows(rows: Sequence[Prediction], profile: Profile, prepare: Callable[[str], str] | None = None) -> ScoredRows:
    """Score the rows that have an expected answer.

    Args:
        rows: Replies.
        profile: The rules.
        prepare: Named step before scoring, such as taking reasoning out.

    Raises:
        RecipeError: the profile has no rule for a row, or there is nothing to score.
    """
    kept = [row for row in rows if row.question.answer is not None]
    if not kept:
        raise RecipeError(f"{profile.name}: none of {counted(len(rows), 'row')} has an answer; nothing can be scored.")
    known: dict[tuple[Any, ...], Scored] = {}  # replies are short and repeat: a million rows hold few different ones
    scored = []
    for row in kept:
        asked = row.question
        key = (
            row.text,
            repr((asked.answer, asked.answers)),
            asked.options,
            asked.answer_type,
            asked.question_type,
            asked.judgement,
            asked.text if profile.reads_text else "",
        )
        if (found := known.get(key)) is None:
            found = known[key] = _score(row, profile, prepare)
        scored.append(found)
    incomplete = 0
    failed = np.array([row.text is None for row in kept])
    if profile.sets:
        kept, scored, failed, incomplete = in_sets(kept, scored, profile)
    strata, weights = _weights([row.question.question_type for row in kept], profile)
    return ScoredRows(
        kept,
        scored,
        np.array([one.score for one in scored]),
        weights,
        strata,
        numbered(row.clip for row in kept)[1],
        ~failed & np.array([not one.parsed for one in scored]),
        failed,
        incomplete,
    )


def _score(row: Prediction, profile: Profile, prepare: Callable[[str], str] | None) -> Scored:
    if row.text is None:  # wrong by any rule; its fault may be the very value that the rule would stumble over
        return NO_REPLY
    try:
        return profile.rule(prepare(row.text) if prepare else row.text, row.question)
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        raise RecipeError(
            f"{profile.name}: row {row.id!r} cannot be scored: {error}. Choose another with --profile, or mend the row."
        ) from None


def _weights(types: list[str], profile: Profile) -> tuple[Codes, Floats]:
    if not profile.groups:
        return np.zeros(len(types), np.int64), np.full(len(types), 1 / len(types))
    names, codes = numbered(types)
    there = [[kind for kind in kinds if kind in names] for kinds in profile.groups.values()]
    there = [kinds for kinds in there if kinds]
    share = {kind: 1 / len(there) / len(kinds) for kinds in there for kind in kinds}
    if unknown := [name for name in names if name not in share]:
        known = sorted(kind for kinds in profile.groups.values() for kind in kinds)
        raise RecipeError(
            f"{profile.name}: {counted(types.count(unknown[0]), 'row has', 'rows have')} the question_type "
            f"{unknown[0]!r}, which has no place in its mean. Its types are: {', '.join(known)}. Choose another with "
            "--profile, or mend the rows."
        )
    of_type = np.array([share[name] for name in names]) / np.bincount(codes)
    return codes, of_type[codes]


def make_table(
    predictions: Predictions,
    rows: Sequence[Prediction],
    profile: Profile,
    prepare: Callable[[str], str] | None = None,
    with_bootstrap: bool = False,
) -> tuple[Table, ScoredRows]:
    """The table of `rows`, which are those of `predictions` that the profile scores.

    Raises:
        RecipeError: see `score_rows`.
    """
    found = score_rows(rows, profile, prepare)
    types, of_type = numbered(row.question.question_type for row in found.rows)
    groups = {
        name: np.isin(of_type, [types.index(kind) for kind in kinds if kind in types])
        for name, kinds in profile.groups.items()
    }
    known = {kind for kinds in profile.groups.values() for kind in kinds}
    missing_types = tuple(sorted(known - set(types)))
    missing_rows = predictions.missing
    table = Table(
        profile,
        line(found, "overall", np.ones(len(of_type), bool), found.weights),
        tuple(_part(found, name, mask) for name, mask in groups.items() if mask.any()),
        tuple(_part(found, name, of_type == place) for place, name in enumerate(types) if name),
        _breakdowns(found, predictions.scoring.breakdowns),
        missing_types,
        missing_rows,
        bool(missing_types or missing_rows or predictions.partial or found.incomplete_sets),
        sum(row.question.answer is None for row in rows),
        sum(row.cut for row in rows),
        sum(row.cut and is_cut_reasoning(row.text or "") for row in rows),
        found.incomplete_sets,
        bootstrap(found.scores, found.weights, found.strata, found.clips) if with_bootstrap else None,
    )
    return table, found


def line(found: ScoredRows, name: str, mask: Mask, weights: Floats) -> Line:
    """The line of the rows under `mask`, whose `weights` are brought to a sum of 1."""
    places = np.flatnonzero(mask)
    part = weights[places]
    value = estimate(found.scores[places], part / part.sum(), found.strata[places], found.clips[places])
    return Line(name, value, int(found.unparsed[places].sum()), int(found.failed[places].sum()))


def _part(found: ScoredRows, name: str, mask: Mask) -> Line:
    return line(found, name, mask, found.weights)


def _breakdowns(found: ScoredRows, wanted: tuple[str, ...] | None) -> dict[str, tuple[Line, ...]]:
    """Plain means over rows (or sets) by each category's values."""
    rows = len(found.rows)
    flat = replace(found, weights=np.full(rows, 1 / rows), strata=np.zeros(rows, np.int64))
    lines = {}
    for name in wanted if wanted is not None else sorted({name for row in found.rows for name in row.categories}):
        values, of_value = numbered(str(row.categories.get(name, "")) for row in found.rows)
        lines[name] = tuple(line(flat, value, of_value == place, flat.weights) for place, value in enumerate(values))
    return lines
