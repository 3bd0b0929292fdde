"""From a record as read to a row that can run, or to the fault that says why it cannot. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from vidpipe.errors import RowError, RowKind
from vidpipe.manifest.row import BadRow, Fault, Record, Row


def to_row(record: Record, index: int, *, recipe_has_prompt: bool) -> Row | BadRow:
    """Check one record.

    Args:
        record: The record as read.
        index: Its position among the manifest's rows, from 0.
        recipe_has_prompt: Whether the recipe makes the user text of rows without a question.
    """
    values = record.values
    try:
        row_id = _row_id(values.get("id"))
    except RowError as error:
        fault = Fault(error.kind, f"line {record.line}: {error}", record.line)
        return BadRow(index, f"(line {record.line})", fault, values)
    try:
        return _row(record, index, row_id, recipe_has_prompt)
    except RowError as error:
        return BadRow(
            index,
            row_id,
            Fault(error.kind, f"line {record.line}, row {row_id!r}: {error}", record.line, row_id),
            values,
        )


def _row_id(value: Any) -> str:
    if value is None:
        raise RowError("bad_id", "the row has no id.")
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        raise RowError("bad_id", f"id must be a text or a number, found {value!r}.")
    return _clean_text("id", str(value), "bad_id")


def _row(record: Record, index: int, row_id: str, recipe_has_prompt: bool) -> Row:
    values = record.values
    question, prompt = _text(values, "question"), _text(values, "prompt")
    if question is None and prompt is None and not recipe_has_prompt:
        raise RowError("missing_field", "neither question nor prompt; give one, or a `prompt` in the recipe.")
    start_s, end_s = _window(values)
    return Row(
        index=index,
        line=record.line,
        id=row_id,
        video=_video(values.get("video")),
        text=prompt,
        question=question,
        options=_options(values.get("options")),
        system=_text(values, "system"),
        clip_start_s=start_s,
        clip_end_s=end_s,
        timestamps_from=_timestamps_from(values.get("timestamps_from")),
        clip_id=_text(values, "clip_id") or _text(values, "group_id"),
        sampling=_settings(values, "sampling"),
        generation=_settings(values, "generation"),
        values=values,
    )


def _video(value: Any) -> str:
    if value is None or value == "":
        raise RowError("missing_field", "no video; give a path or a file:// URI.")
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, str):
        raise RowError(
            "bad_value",
            f"video must be one path, found {value!r}. Several videos a row are not supported yet.",
        )
    return value


def _text(values: Mapping[str, Any], name: str) -> str | None:
    value = values.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise RowError("bad_value", f"{name} must be a text, found {value!r}.")
    return _clean_text(name, value)


def _clean_text(name: str, value: str, kind: RowKind = "bad_value") -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        message = f"{name} has half of a surrogate pair at character {error.start + 1}, which no UTF-8 file can hold."
        raise RowError(kind, message) from None
    return value


def _timestamps_from(value: Any) -> Literal["clip", "video"]:
    if value in (None, "clip"):
        return "clip"
    if value == "video":
        return "video"
    raise RowError("bad_value", f"timestamps_from must be clip or video, found {value!r}.")


def _options(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(option, str) for option in value):
        raise RowError("bad_options", f"options must be a list of texts, found {value!r}.")
    return tuple(_clean_text("options", option) for option in value)


def _window(values: Mapping[str, Any]) -> tuple[float | None, float | None]:
    start_s, end_s = (_seconds(values, name) for name in ("clip_start", "clip_end"))
    if start_s is not None and start_s < 0:
        raise RowError("bad_window", f"clip_start {start_s:g} is negative.")
    if end_s is not None and end_s <= (start_s or 0.0):
        raise RowError("bad_window", f"clip_end {end_s:g} is not after clip_start {start_s or 0.0:g}.")
    return start_s, end_s


def _seconds(values: Mapping[str, Any], name: str) -> float | None:
    value = values.get(name)
    if value is None:
        return None
    try:
        seconds = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        seconds = math.nan
    if not math.isfinite(seconds):
        raise RowError("bad_window", f"{name} must be seconds, found {value!r}.")
    return seconds


def _settings(values: Mapping[str, Any], section: str) -> dict[str, Any]:
    """Settings written nested (`{"sampling": {"fps": 1}}`) or dotted (`"sampling.fps": 1`), never one key both ways."""
    nested = values.get(section)
    if nested is not None and not isinstance(nested, dict):
        raise RowError("bad_value", f"{section} must be an object, found {nested!r}.")
    settings = dict(nested or {})
    for name, value in values.items():
        if name.startswith(f"{section}.") and value is not None:
            key = name.removeprefix(f"{section}.")
            if key in settings:
                raise RowError("bad_value", f"{section}.{key} stands twice, nested and dotted. Keep one.")
            settings[key] = value
    return settings
