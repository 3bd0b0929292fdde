"""The values that hold for one row: row column, then `overrides`, then recipe and defaults.

`--set` is already inside the recipe here. Pure: rows in, values out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from vidpipe.errors import RecipeError, RowError
from vidpipe.recipe.schema import Generation, Recipe, Sampling, Section
from vidpipe.wording import did_you_mean

S = TypeVar("S", bound=Section)


@dataclass(frozen=True)
class RowSettings:
    """Sampling and generation as one row has them."""

    sampling: Sampling
    generation: Generation


def resolve_row(
    recipe: Recipe,
    row_values: Mapping[str, Any],
    sampling: Mapping[str, Any],
    generation: Mapping[str, Any],
) -> RowSettings:
    """Settings of a row whose own columns say `sampling` and `generation`.

    Args:
        recipe: The run's recipe.
        row_values: All columns of the row, for `overrides[].when`.
        sampling: The row's `sampling.*` columns, without the prefix.
        generation: The row's `generation.*` columns, without the prefix.

    Raises:
        RowError: a value does not fit the schema.
    """
    match = next((o for o in recipe.overrides if _matches(o.when, row_values)), None)
    return RowSettings(
        sampling=_overlay("sampling", recipe.sampling, match.sampling if match else {}, sampling),
        generation=_overlay("generation", recipe.generation, match.generation if match else {}, generation),
    )


def when_names(recipe: Recipe) -> set[str]:
    """What `overrides[].when` asks for; `categories.duration` may be a column, or a key in the values of one."""
    return {name for override in recipe.overrides for name, wanted in override.when.items() if wanted is not None}


def refuse_unknown_columns(recipe: Recipe, unseen: Collection[str], columns: Collection[str]) -> None:
    """Find `overrides` that could never apply, before every row runs without them.

    Args:
        recipe: The run's recipe.
        unseen: Those of `when_names` that no row has.
        columns: Those of the manifest.

    Raises:
        RecipeError: naming one and the columns that there are.
    """
    for number, override in enumerate(recipe.overrides):
        for name, wanted in override.when.items():
            if wanted is None or name not in unseen:
                continue
            there = f"The manifest has the columns {', '.join(map(repr, sorted(columns)))}; a dot reaches into one."
            hint = did_you_mean(name, columns, then=there)
            raise RecipeError(f"overrides[{number}].when: no row has {name!r}, so this would never apply. {hint}")


def _overlay(name: str, base: S, *layers: Mapping[str, Any]) -> S:
    if not any(layers):
        return base
    values = base.model_dump(exclude_unset=True)
    for layer in layers:
        values.update(layer)
    try:
        return type(base).model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(step) for step in (name, *first["loc"]))
        if first["type"] == "extra_forbidden":
            known = sorted(type(base).model_fields)
            hint = did_you_mean(str(first["loc"][-1]), known, otherwise=f"Known: {', '.join(known)}.")
            raise RowError("bad_value", f"unknown setting {key!r}. {hint}") from None
        raise RowError("bad_value", f"{key}: {first['msg']}, found {first['input']!r}.") from None


def _matches(when: Mapping[str, Any], row_values: Mapping[str, Any]) -> bool:
    return all(reach(row_values, column) == wanted for column, wanted in when.items())


def reach(values: Any, dotted: str) -> Any:
    """`categories.duration` as a column of that name, or as a key in the column `categories`."""
    if isinstance(values, Mapping) and dotted in values:
        return values[dotted]
    head, _, rest = dotted.partition(".")
    if rest and isinstance(values, Mapping):
        return reach(values.get(head), rest)
    return None


def fingerprint(values: Any) -> str:
    """Hash of JSON-able values, equal for equal content whatever the key order."""
    text = json.dumps(values, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
