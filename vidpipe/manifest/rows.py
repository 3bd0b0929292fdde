"""From a record as read to a row that can run, or to the fault that says why it cannot. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vidpipe.errors import RowError
from vidpipe.manifest.cells import clean_text, number, text, texts, whole_number, word
from vidpipe.manifest.chat import chat_of
from vidpipe.manifest.media import media_of
from vidpipe.manifest.row import BadRow, Fault, Record, Row

OPTION_STYLES = ("as_is", "dot", "paren", "auto")


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
    return clean_text("id", str(value), "bad_id")


def _row(record: Record, index: int, row_id: str, recipe_has_prompt: bool) -> Row:
    values = record.values
    question, prompt = text(values, "question"), text(values, "prompt")
    media = media_of(values)
    messages = chat_of(values, media)
    if question is None and prompt is None and messages is None and not recipe_has_prompt:
        raise RowError(
            "missing_field", "neither question nor prompt nor messages; give one, or a `prompt` in the recipe."
        )
    subtitles = texts(values, "subtitles")
    if subtitles and sum(medium.modality == "video" for medium in media) != 1:
        raise RowError("bad_value", "subtitles belong to one video; the row has none, or several.")
    return Row(
        index=index,
        line=record.line,
        id=row_id,
        media=media,
        text=prompt,
        question=question,
        options=_options(values.get("options")),
        option_style=word(values, "option_style", OPTION_STYLES),  # type: ignore[arg-type]
        system=text(values, "system"),
        prefill=text(values, "prefill") or None,
        messages=messages,
        subtitles=subtitles,
        subtitle_offset_s=number(values, "subtitle_offset") or 0.0,
        timestamps_from=word(values, "timestamps_from", ("clip", "video")) or "clip",  # type: ignore[arg-type]
        clip_id=text(values, "clip_id") or text(values, "group_id"),
        place_in_set=_place_in_set(values),
        sampling=_settings(values, "sampling"),
        generation=_settings(values, "generation"),
        values=values,
    )


def _place_in_set(values: Mapping[str, Any]) -> tuple[str, int] | None:
    """Scorers put the rows of a set in order; a row that does not say where it stands would be lost there."""
    name, index = text(values, "set_id"), whole_number(values, "set_index")
    if (name is None) != (index is None):
        raise RowError("missing_field", "set_id and set_index go together: the set, and the row's place in it.")
    return None if name is None or index is None else (name, index)


def _options(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(option, str) for option in value):
        raise RowError("bad_options", f"options must be a list of texts, found {value!r}.")
    return tuple(clean_text("options", option) for option in value)


def _settings(values: Mapping[str, Any], section: str) -> dict[str, Any]:
    """Settings written nested (`{"sampling": {"fps": 1}}`) or dotted (`"sampling.fps": 1`), never one key both ways."""
    nested = values.get(section)
    if nested is not None and not isinstance(nested, dict):
        raise RowError("bad_value", f"{section} must be an object, found {nested!r}.")
    settings = dict(nested or {})
    start = f"{section}."
    for name, value in values.items():
        if name.startswith(start) and value is not None:
            key = name.removeprefix(start)
            if key in settings:
                raise RowError("bad_value", f"{section}.{key} stands twice, nested and dotted. Keep one.")
            settings[key] = value
    return settings
