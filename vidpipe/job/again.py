"""Which rows are asked again, and what is different then: the recipe's `retry.rules`. Pure.

What a row's next try is follows from its tries so far alone, so that a run that was killed
goes on where it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from vidpipe.errors import CapabilityError, RowError
from vidpipe.models.family import Family
from vidpipe.plan.clips import PlannedRow
from vidpipe.recipe.resolve import RowSettings, resolve_row
from vidpipe.recipe.schema import Recipe, RetryRule
from vidpipe.record.row import OutputRow


def causes_of(row: OutputRow) -> frozenset[str]:
    """What `retry.rules[].when` can call the outcome `row`."""
    found = [
        row.status,
        row.error_kind,
        *(row.reply.flags if row.reply else ()),
        row.reply.parse if row.reply else None,
    ]
    return frozenset(cause for cause in found if cause is not None)


def rule_for(rules: Sequence[RetryRule], tries: Sequence[OutputRow]) -> RetryRule | None:
    """The rule by which a row is asked again; None if the last outcome is to stand.

    Args:
        rules: The recipe's. The first one counts that names the outcome and has not been used up by this row.
        tries: What came of the row so far, in order.
    """
    used: Counter[int] = Counter()
    chosen: int | None = None
    for outcome in tries:
        causes = causes_of(outcome)
        fitting = (n for n, rule in enumerate(rules) if used[n] < rule.times and not causes.isdisjoint(rule.when))
        chosen = next(fitting, None)
        if chosen is None:
            return None
        used[chosen] += 1
    return None if chosen is None else rules[chosen]


def asked_again(
    planned: PlannedRow, rule: RetryRule, tries: int, recipe: Recipe, family: Family, processor: Mapping[str, Any]
) -> PlannedRow:
    """The row as it is asked under `rule`: its own settings, with those of the rule in their place.

    With a temperature above 0 every try has a seed of its own: the row's (0 without one) and the number of tries.

    Args:
        planned: The row as it was asked first.
        rule: See `rule_for`.
        tries: How often it was asked.
        recipe: The run's.
        family: The model's.
        processor: The checkpoint's video processor settings.

    Raises:
        RowError, CapabilityError: the rule does not fit what the row's own columns say.
    """
    row = planned.row
    settings = resolve_row(recipe, row.values, {**row.sampling, **rule.sampling}, {**row.generation, **rule.generation})
    generation = settings.generation
    if generation.temperature > 0:
        generation = generation.model_copy(update={"seed": (generation.seed or 0) + tries})
    return replace(planned, settings=RowSettings(family.complete(settings.sampling, processor), generation))


def refuse_useless_rules(recipe: Recipe, family: Family, processor: Mapping[str, Any]) -> None:
    """Refuse rules that cannot be carried out with the recipe's own settings, or would ask the same again.

    Raises:
        CapabilityError: naming the rule.
    """
    before = resolve_row(recipe, {}, {}, {})
    for number, rule in enumerate(recipe.retry.rules):
        try:
            after = resolve_row(recipe, {}, rule.sampling, rule.generation)
            family.complete(after.sampling, processor)
        except (RowError, CapabilityError) as error:
            raise CapabilityError(f"retry.rules[{number}]: {error}") from None
        if rule.changes_something and after == before and after.generation.temperature == 0:
            raise CapabilityError(
                f"retry.rules[{number}]: it changes nothing, and the same question gets the same reply. Give other "
                "values than the recipe's own, for example generation: {max_tokens: 256}."
            )
