"""Questions that score together: rows of a set to one scored unit. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vidpipe.benchmarks.predictions import Prediction
from vidpipe.benchmarks.profile import Profile, Scored
from vidpipe.errors import RecipeError


def in_sets(
    rows: Sequence[Prediction], scored: Sequence[Scored], profile: Profile
) -> tuple[list[Prediction], list[Scored], NDArray[np.bool_], int]:
    """One row and one score for each whole set, in the order of the sets' first rows.

    A set's type and categories are those of its last row, as upstream takes them.

    Returns:
        The sets, their scores, which of them have a row that failed, and how many sets are not whole.

    Raises:
        RecipeError: a row is in no set, a set has too many rows or a type without a rule, or no set is whole.
    """
    assert profile.sets is not None
    members: dict[str, list[tuple[int, int]]] = {}
    for place, row in enumerate(rows):
        if row.set_id is None:
            raise RecipeError(f"{profile.name}: row {row.id!r} has no set_id; {profile.sets.size} rows make a set.")
        members.setdefault(row.set_id, []).append((row.set_index, place))
    whole: list[Prediction] = []
    found: list[Scored] = []
    failed: list[bool] = []
    for name, places in members.items():
        if len(places) > profile.sets.size:
            raise RecipeError(f"{profile.name}: set {name!r} has {len(places)} rows, not {profile.sets.size}.")
        if len(places) < profile.sets.size:
            continue
        order = [place for _, place in sorted(places)]
        last, parts = rows[order[-1]], [scored[place] for place in order]
        try:
            score = profile.sets.rule([part.score for part in parts], last.question.question_type, last.categories)
        except ValueError as error:
            raise RecipeError(f"{profile.name}: set {name!r} cannot be scored: {error}.") from None
        whole.append(replace(last, id=name))
        found.append(Scored(score, [part.extracted for part in parts], all(part.parsed for part in parts)))
        failed.append(any(rows[place].text is None for place in order))
    if not whole:
        raise RecipeError(f"{profile.name}: none of the {len(members)} sets has its {profile.sets.size} rows.")
    return whole, found, np.array(failed), len(members) - len(whole)
