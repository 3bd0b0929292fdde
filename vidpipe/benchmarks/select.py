"""Which profile scores which rows."""

from __future__ import annotations

from collections.abc import Sequence

from vidpipe.benchmarks.predictions import Prediction, Predictions
from vidpipe.benchmarks.registry import PROFILES
from vidpipe.errors import RecipeError


def rows_by_profile(predictions: Predictions, asked: Sequence[str]) -> dict[str, list[Prediction]]:
    """The asked profiles over all rows, or else each profile that the manifest names over its rows.

    Raises:
        RecipeError: neither the caller nor the rows name one.
    """
    if asked:
        return dict.fromkeys(asked, predictions.rows)
    rows: dict[str, list[Prediction]] = {}
    for row in predictions.rows:
        if row.scorer is None:
            raise RecipeError(
                f"{predictions.source}: row {row.id!r} names no scorer. Type --profile NAME; there are: "
                f"{', '.join(PROFILES)}."
            )
        rows.setdefault(row.scorer, []).append(row)
    if not rows:
        raise RecipeError(f"{predictions.source} holds no rows; nothing can be scored.")
    return rows
