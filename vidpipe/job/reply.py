"""What can be wrong with a reply's text, judged from the text alone: marks, never changes. Pure."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

from vidpipe.recipe.schema import Generation
from vidpipe.record.row import ParseState, ReplyRecord

TAIL_CHARS = 4096
"""How far from its end a reply is searched for a loop."""
LOOP_CHARS = 60
"""A loop is at least so long, so that "no, no, no, no" is none."""
LOOP_TIMES = 4
"""Times that a piece of text stands one after the other in a loop."""


def judge(text: str, generation: Generation) -> ReplyRecord:
    """Marks for a reply, and whether it has the form that was asked for.

    Args:
        text: The reply as the engine gave it.
        generation: The row's; `json_schema`, `choice` and `regex` count.
    """
    found = {
        "empty": not text.strip(),
        "control_characters": any(unicodedata.category(c) == "Cc" and c not in "\t\n\r" for c in text),
        "surrogate": any("\ud800" <= c <= "\udfff" for c in text),
        "repetition": ends_in_loop(text),
    }
    return ReplyRecord([flag for flag, holds in found.items() if holds], _parse_state(text, generation))


def ends_in_loop(text: str) -> bool:
    """Whether the end of `text` is one piece again and again (the last time perhaps cut).

    Models that loop do so until the token limit, so only the end is looked at.
    """
    backwards = text.rstrip()[-TAIL_CHARS:][::-1]
    matches = _prefix_matches(backwards)
    return any(
        matches[period] + period >= max(LOOP_CHARS, LOOP_TIMES * period)
        for period in range(1, len(backwards) // LOOP_TIMES + 1)
    )


def _prefix_matches(text: str) -> list[int]:
    """For each position, how many characters from there on equal the beginning (the Z-algorithm, Gusfield 1997)."""
    matches = [0] * len(text)
    left = right = 0
    for i in range(1, len(text)):
        length = min(right - i, matches[i - left]) if i < right else 0
        while i + length < len(text) and text[length] == text[i + length]:
            length += 1
        matches[i] = length
        if i + length > right:
            left, right = i, i + length
    return matches


def _parse_state(text: str, generation: Generation) -> ParseState | None:
    if generation.choice is not None:
        return "ok" if text in generation.choice else "mismatch"
    if generation.regex is not None:
        return "ok" if re.fullmatch(generation.regex, text) else "mismatch"
    if generation.json_schema is not None:
        return _against_schema(text, generation.json_schema)
    return None


def _against_schema(text: str, schema: dict[str, Any]) -> ParseState:
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return "not_json"
    try:  # an empty registry: a `$ref` is never fetched
        return "ok" if validator_for(schema)(schema, registry=Registry()).is_valid(value) else "mismatch"
    except (Unresolvable, RecursionError):
        return "mismatch"
