"""Which profile scores which rows."""

from __future__ import annotations

from collections.abc import Sequence

from vidpipe.benchmarks.predictions import Prediction, Predictions
from vidpipe.benchmarks.registry import PROFILES
from vidpipe.errors import RecipeError


def rows_by_profile(predictions: Predictions, asked: Sequence[str]) -> dict[str, list[Prediction]]:
    """The asked profiles over all rows, or else each profile that rows, or for them the recipe, name.

    Raises:
        RecipeError: nobody names one.
    """
    if asked:
        return dict.fromkeys(asked, predictions.rows)
    rows: dict[str, list[Prediction]] = {}
    for row in predictions.rows:
        scorer = row.scorer or predictions.scoring.scorer
        if scorer is None:
            raise RecipeError(
                f"{predictions.source}: neither row {row.id!r} nor a recipe names a scorer. Type --profile exact "
                f"(the reply is the answer), or another of: {', '.join(PROFILES)}."
            )
        rows.setdefault(scorer, []).append(row)
    if not rows:
        raise RecipeError(f"{predictions.source} holds no rows; nothing can be scored.")
    return rows
