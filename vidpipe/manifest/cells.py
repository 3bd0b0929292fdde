"""Single values of a row: texts, numbers, words of a list, each checked and named in its error. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from vidpipe.errors import RowError, RowKind

EXACT_BELOW = 2.0**53
"""From here on not every whole number is a float."""


def text(values: Mapping[str, Any], name: str) -> str | None:
    """The text in column `name`; None where it is null.

    Raises:
        RowError: `bad_value`.
    """
    value = values.get(name)
    return None if value is None else clean_text(name, value)


def clean_text(name: str, value: Any, kind: RowKind = "bad_value") -> str:
    """`value`, if it is a text that a UTF-8 file can hold.

    Raises:
        RowError: of `kind`.
    """
    if not isinstance(value, str):
        raise RowError(kind, f"{name} must be a text, found {value!r}.")
    if value.isascii():
        return value
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        message = f"{name} holds half a surrogate pair at character {error.start + 1}, which no UTF-8 file can hold."
        raise RowError(kind, message) from None
    return value


def number(values: Mapping[str, Any], name: str, kind: RowKind = "bad_value") -> float | None:
    """The finite number in column `name`, also where it is written as a text; None where it is null.

    Raises:
        RowError: of `kind`.
    """
    value = values.get(name)
    if value is None:
        return None
    try:
        found = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found):
        raise RowError(kind, f"{name} must be a number, found {value!r}.")
    return found


def whole_number(values: Mapping[str, Any], name: str) -> int | None:
    """The whole number, at least 0, in column `name`; None where it is null.

    Raises:
        RowError: `bad_value`.
    """
    found = number(values, name)
    if found is None:
        return None
    if not 0 <= found < EXACT_BELOW or found != int(found):
        raise RowError("bad_value", f"{name} must be a whole number from 0 to 2^53, found {values[name]!r}.")
    return int(found)


def word(values: Mapping[str, Any], name: str, allowed: tuple[str, ...]) -> str | None:
    """The word in column `name`, one of `allowed`; None where it is null.

    Raises:
        RowError: `bad_value`.
    """
    value = values.get(name)
    if value is not None and value not in allowed:
        raise RowError("bad_value", f"{name} must be {', '.join(allowed[:-1])} or {allowed[-1]}, found {value!r}.")
    return value


def texts(values: Mapping[str, Any], name: str, kind: RowKind = "bad_value") -> tuple[str, ...]:
    """The texts in column `name`, a list or one text; none where it is null.

    Raises:
        RowError: of `kind`.
    """
    value = values.get(name)
    if value is None:
        return ()
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(item, str) and item for item in found):
        raise RowError(kind, f"{name} must be a text or a list of texts, found {value!r}.")
    return tuple(clean_text(name, item, kind) for item in found)
