"""The columns that scorers read beside the answer: options, further answers, categories, sets. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vidpipe.errors import RowError
from vidpipe.manifest.cells import clean_text, text, whole_number


def options_of(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The row's options, as published.

    Raises:
        RowError: `bad_options`.
    """
    value = values.get("options")
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(option, str) for option in value):
        raise RowError("bad_options", f"options must be a list of texts, found {value!r}.")
    return tuple(clean_text("options", option) for option in value)


def answers_of(values: Mapping[str, Any]) -> tuple[Any, ...]:
    """Further answers that are right, of any type.

    Raises:
        RowError: `bad_value`; a text would be taken for a list of its characters.
    """
    value = values.get("answers")
    if value is None:
        return ()
    if not isinstance(value, list):
        raise RowError("bad_value", f"answers must be a list, found {value!r}.")
    return tuple(value)


def categories_of(values: Mapping[str, Any]) -> Mapping[str, str]:
    """What scores are broken down by; a category that is null is none.

    The column's own object where it can be, since millions of rows share few of them.

    Raises:
        RowError: `bad_value`.
    """
    value = values.get("categories")
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise RowError("bad_value", f'categories must be an object such as {{"duration": "long"}}, found {value!r}.')
    if all(type(word) is str for word in value.values()):
        return value
    return {name: str(word) for name, word in value.items() if word is not None}


def place_in_set(values: Mapping[str, Any]) -> tuple[str, int] | None:
    """Scorers put the rows of a set in order; a row that does not say where it stands would be lost there.

    Raises:
        RowError: `bad_value` or `missing_field`.
    """
    name, index = text(values, "set_id"), whole_number(values, "set_index")
    if (name is None) != (index is None):
        raise RowError("missing_field", "set_id and set_index go together: the set, and the row's place in it.")
    return None if name is None or index is None else (name, index)
