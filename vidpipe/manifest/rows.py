"""From a record as read to a row that can run, or to the fault that says why it cannot. Pure.

A manifest may have millions of rows, and most have nothing but an id, a video and texts:
these are made without asking for each column that could be there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from vidpipe.errors import RowError
from vidpipe.manifest.answers import refuse_unfit_answer
from vidpipe.manifest.cells import EXACT_BELOW, clean_text, number, text, texts, word
from vidpipe.manifest.chat import chat_of
from vidpipe.manifest.media import first_window, media_of
from vidpipe.manifest.row import BadRow, Fault, Medium, Record, Row
from vidpipe.manifest.scoring import answers_of, categories_of, options_of, place_in_set
from vidpipe.redact import redact

RARE_COLUMNS = frozenset(
    {
        "clips", "frames", "frames_fps", "frames_start_index", "images", "messages", "option_style", "prefill",
        "set_id", "set_index", "subtitle_offset", "subtitles", "system", "timestamps_from",
    }
)  # fmt: skip
"""Columns with a meaning here beside those that a simple row has."""
WINDOW_COLUMNS = frozenset({"clip_start", "clip_end", "start", "end"})
SECTIONS = ("sampling", "generation")
OPTION_STYLES = ("as_is", "dot", "paren", "auto")


def to_row(record: Record, index: int, *, recipe_has_prompt: bool) -> Row | BadRow:
    """Check one record.

    Args:
        record: The record as read.
        index: Its position among the manifest's rows, from 0.
        recipe_has_prompt: Whether the recipe makes the user text of rows without a question.
    """
    if (simple := _simple_row(record, index, recipe_has_prompt)) is not None:
        return simple
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


def _simple_row(record: Record, index: int, recipe_has_prompt: bool) -> Row | None:
    """The row that `_row` makes of a record of one video and its texts; None for all others, faulty ones too."""
    values = record.values
    columns = tuple(values)
    has_rare, has_window, has_settings = _has(columns)
    if has_rare:
        return None
    row_id, video, options = values.get("id"), values.get("video"), values.get("options")
    question, prompt = values.get("question"), values.get("prompt")
    clip_id, group_id = values.get("clip_id"), values.get("group_id")
    if type(row_id) is int:
        row_id = str(row_id)
    listed: Any = [] if options is None else options
    if not row_id or not video or type(listed) is not list:
        return None
    if not isinstance(values.get("answers"), list | None) or not isinstance(values.get("categories"), dict | None):
        return None
    if question is None and prompt is None and not recipe_has_prompt:
        return None
    for value in (row_id, video, *listed):
        if type(value) is not str or not (value.isascii() or _is_utf8(value)):
            return None
    for value in (question, prompt, clip_id, group_id):
        if value is not None and (type(value) is not str or not (value.isascii() or _is_utf8(value))):
            return None
    if redact(row_id) != row_id:
        return None
    try:
        window = first_window(values) if has_window else (None, None)
        sampling = _settings(values, "sampling") if has_settings else {}
        generation = _settings(values, "generation") if has_settings else {}
        if listed:
            refuse_unfit_answer(listed, values.get("answer"), values.get("answer_type"))
    except RowError:
        return None
    return Row(
        index=index,
        line=record.line,
        id=row_id,
        media=(Medium("video", video, *window),),
        text=prompt,
        question=question,
        options=tuple(listed),
        clip_id=clip_id or group_id,
        sampling=sampling,
        generation=generation,
        values=values,
    )


@lru_cache
def _has(columns: tuple[str, ...]) -> tuple[bool, bool, bool]:
    """Whether a row with these columns can say something rare, name a window, and bring settings of its own."""
    settings = any(section in columns or _dotted(columns, section) for section in SECTIONS)
    return not RARE_COLUMNS.isdisjoint(columns), not WINDOW_COLUMNS.isdisjoint(columns), settings


@lru_cache
def _dotted(columns: tuple[str, ...], section: str) -> tuple[str, ...]:
    """The columns that name a setting of `section` with a dot."""
    return tuple(name for name in columns if name.startswith(f"{section}."))


def _is_utf8(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _row_id(value: Any) -> str:
    if value is None:
        raise RowError("bad_id", "the row has no id.")
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        raise RowError("bad_id", f"id must be a text or a number, found {value!r}.")
    if isinstance(value, float) and not math.isfinite(value):
        raise RowError("bad_id", f"id must be a text or a finite number, found {value!r}.")
    row_id = clean_text("id", str(value), "bad_id")
    if redact(row_id) != row_id:
        raise RowError("bad_id", "the id holds a password, a token or a signature, and ids are recorded. Give another.")
    return row_id


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
    options = options_of(values)
    answers_of(values)
    categories_of(values)
    refuse_unfit_answer(options, values.get("answer"), values.get("answer_type"))
    return Row(
        index=index,
        line=record.line,
        id=row_id,
        media=media,
        text=prompt,
        question=question,
        options=options,
        option_style=word(values, "option_style", OPTION_STYLES),  # type: ignore[arg-type]
        system=text(values, "system"),
        prefill=text(values, "prefill") or None,
        messages=messages,
        subtitles=subtitles,
        subtitle_offset_s=number(values, "subtitle_offset") or 0.0,
        timestamps_from=word(values, "timestamps_from", ("clip", "video")) or "clip",  # type: ignore[arg-type]
        clip_id=text(values, "clip_id") or text(values, "group_id"),
        place_in_set=place_in_set(values),
        sampling=_settings(values, "sampling"),
        generation=_settings(values, "generation"),
        values=values,
    )


def _settings(values: Mapping[str, Any], section: str) -> dict[str, Any]:
    """Settings written nested (`{"sampling": {"fps": 1}}`) or dotted (`"sampling.fps": 1`), never one key both ways.

    A whole number is one as `8.0` too: tables write a column so if a single cell of it is empty.
    """
    nested = values.get(section)
    if nested is not None and not isinstance(nested, dict):
        raise RowError("bad_value", f"{section} must be an object, found {nested!r}.")
    settings = dict(nested or {})
    for name in _dotted(tuple(values), section):
        if values[name] is not None:
            key = name.removeprefix(f"{section}.")
            if key in settings:
                raise RowError("bad_value", f"{section}.{key} stands twice, nested and dotted. Keep one.")
            settings[key] = values[name]
    return {key: int(value) if _is_whole(value) else value for key, value in settings.items()}


def _is_whole(value: Any) -> bool:
    return type(value) is float and value.is_integer() and abs(value) < EXACT_BELOW
