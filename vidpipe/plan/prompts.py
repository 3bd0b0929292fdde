"""The user text of a row: its finished prompt, or the recipe's template over its columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from vidpipe.errors import RecipeError, RowError
from vidpipe.manifest.row import Row

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LETTERED = re.compile(r"\s*\(?([A-Z])[.):]")


class PromptTemplate:
    """The recipe's `prompt`, compiled once.

    Args:
        source: Jinja2 source; None means the question and its options, a line each.

    Raises:
        RecipeError: the source is no template.
    """

    def __init__(self, source: str | None) -> None:
        self._template = None
        if source is not None:
            environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True)
            try:
                self._template = environment.from_string(source)
            except TemplateError as error:
                raise RecipeError(f"prompt: not a Jinja2 template: {error}") from None

    def user_text(self, row: Row) -> str:
        """The text that the model gets beside the video.

        Raises:
            RowError: the template asks for a column that the row lacks.
        """
        if row.text is not None:
            return row.text
        if self._template is None:
            return "\n".join([row.question or "", *lettered(row.options)])
        try:
            text: str = self._template.render(**{**row.values, "options": list(row.options)})
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
            raise RowError("bad_value", f"row {row.id!r}: the recipe's prompt template fails: {error}.") from None
        return text


def lettered(options: Sequence[str]) -> list[str]:
    """Options with their letters, as they are if they bring letters in order (`A. left`, `(B) right`).

    Raises:
        RowError: more options than letters.
    """
    marks = [match.group(1) if (match := _LETTERED.match(option)) else None for option in options]
    if options and marks == list(LETTERS[: len(options)]):
        return list(options)
    if len(options) > len(LETTERS):
        raise RowError("bad_options", f"{len(options)} options are more than there are letters.")
    return [f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=False)]


def messages_for(row: Row, user_text: str, system: str | None) -> tuple[dict[str, Any], ...]:
    """Chat messages: system text if any, then the video and, behind it, the user text.

    The video comes first so that all questions on a clip share the longest prefix.
    """
    turns: list[dict[str, Any]] = []
    if (system_text := row.system or system) is not None:
        turns.append({"role": "system", "content": system_text})
    turns.append({"role": "user", "content": [{"type": "video"}, {"type": "text", "text": user_text}]})
    return tuple(turns)
