"""The column `messages`: a whole chat, checked, with one mark for each of the row's media. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vidpipe.errors import RowError
from vidpipe.manifest.cells import clean_text
from vidpipe.manifest.row import Medium

ROLES = ("system", "user", "assistant")
MARKS = ("image", "video")


def chat_of(values: Mapping[str, Any], media: Sequence[Medium]) -> tuple[dict[str, Any], ...] | None:
    """The turns in the form that chat templates take; None where the row has no `messages`.

    A last turn of the assistant is the beginning of the answer.

    Raises:
        RowError: `bad_value`.
    """
    value = values.get("messages")
    if value is None:
        return None
    if not isinstance(value, list) or not value:
        raise RowError("bad_value", f"messages must be a list of turns {{role, content}}, found {value!r}.")
    for other in ("prompt", "system", "prefill"):
        if values.get(other) is not None:
            raise RowError("bad_value", f"messages and {other} exclude each other; write it into messages.")
    turns = tuple(_turn(turn) for turn in value)
    last = turns[-1]
    if last["role"] == "system" or (last["role"] == "assistant" and not isinstance(last["content"], str)):
        raise RowError("bad_value", "messages must end with the user's turn, or with text that begins the answer.")
    parts = [part["type"] for turn in turns if isinstance(turn["content"], list) for part in turn["content"]]
    for mark in MARKS:
        marks, items = parts.count(mark), sum(medium.modality == mark for medium in media)
        if marks != items:
            raise RowError(
                "bad_value",
                f'messages have {marks} parts {{"type": "{mark}"}}, the row has {items} {mark}s. Mark each once.',
            )
    return turns


def _turn(turn: Any) -> dict[str, Any]:
    if not isinstance(turn, dict) or turn.keys() != {"role", "content"} or turn["role"] not in ROLES:
        raise RowError("bad_value", f"a turn must be {{role, content}} with role {', '.join(ROLES)}, found {turn!r}.")
    content = turn["content"]
    if isinstance(content, list) and content:
        return {"role": turn["role"], "content": [_part(part) for part in content]}
    return {"role": turn["role"], "content": clean_text("content of a turn", content)}


def _part(part: Any) -> dict[str, Any]:
    kind = part.get("type") if isinstance(part, dict) else None
    given = {key for key, value in part.items() if value is not None} if isinstance(part, dict) else set()
    if kind == "text" and given == {"type", "text"}:
        return {"type": "text", "text": clean_text("text of a turn", part["text"])}
    if kind in MARKS and given == {"type"}:
        return {"type": kind}
    raise RowError(
        "bad_value",
        f'a part must be {{"type": "text", "text": ...}}, {{"type": "video"}} or {{"type": "image"}}, found {part!r}. '
        "Files are named in the columns video, frames and images.",
    )
