"""What a row says to the model: its own chat, its finished prompt, or the recipe's template over its columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Literal

from jinja2 import Template, nodes
from jinja2.meta import find_undeclared_variables

from vidpipe.errors import CapabilityError, RecipeError, RowError
from vidpipe.manifest.answers import LETTERS, letter_of
from vidpipe.manifest.row import Row
from vidpipe.plan.bounded_templates import BoundedEnvironment, render
from vidpipe.wording import did_you_mean

OptionStyle = Literal["as_is", "dot", "paren", "auto"]

_ENVIRONMENT = BoundedEnvironment()


class PromptTemplate:
    """The recipe's `prompt`, or the published wording that its `template` names; compiled once.

    Args:
        source: Jinja2 source; None means the question and its options, a line each.
        name: Of a published wording, instead of a source.

    Raises:
        RecipeError: the source is no template.
        CapabilityError: there is no wording of that name.
    """

    def __init__(self, source: str | None, name: str | None = None) -> None:
        self._template, self._source = None if name is None else _published(name), source
        if source is not None:
            try:
                self._template = _ENVIRONMENT.from_string(source)
            except Exception as error:  # Python's own compiler has limits, too
                raise RecipeError(f"prompt: not a Jinja2 template: {error}") from None

    def refuse_unknown_names(self, columns: Iterable[str]) -> None:
        """Find names that no column has before all rows fail for them.

        Names that the template itself asks about (`is defined`) or gives a default may be missing.

        Args:
            columns: Those of the manifest.

        Raises:
            RecipeError: naming them and the columns that there are.
        """
        if self._source is None:
            return
        tree = _ENVIRONMENT.parse(self._source)
        tests = (test.node for test in tree.find_all(nodes.Test) if test.name in ("defined", "undefined"))
        defaults = (call.node for call in tree.find_all(nodes.Filter) if call.name in ("default", "d"))
        may_lack = {node.name for node in (*tests, *defaults) if isinstance(node, nodes.Name)}
        known = sorted({*columns, "options"})
        unknown = find_undeclared_variables(tree) - set(known) - _ENVIRONMENT.globals.keys() - may_lack
        for name in sorted(unknown):
            hint = did_you_mean(name, known, then=f"It has {', '.join(map(repr, known))}.")
            raise RecipeError(f"prompt: the template asks for {name!r}, and the manifest has no such column. {hint}")

    def user_text(self, row: Row) -> str:
        """The text that the model gets beside the media.

        A row's own `template` goes before the recipe's. A template sees the options as they are,
        unless the row says how they are lettered.

        Raises:
            RowError: the template asks for a column that the row lacks, or the row names one that does not exist.
        """
        if row.text is not None:
            return row.text
        template = self._template
        if (name := row.values.get("template")) is not None:
            template = _of_row(row.id, name)
        if template is None:
            return "\n".join([row.question or "", *lettered(row.options, row.option_style or "auto")])
        options = lettered(row.options, row.option_style or "as_is")
        try:
            return render(template, {**row.values, "options": options})
        except Exception as error:  # a template can call whatever its values have
            raise RowError("bad_value", f"row {row.id!r}: the recipe's prompt template fails: {error}.") from None


@lru_cache
def _published(name: str) -> Template:
    from vidpipe.benchmarks.prompts import get_template

    return _ENVIRONMENT.from_string(get_template(name))


def _of_row(row_id: str, name: Any) -> Template:
    try:
        return _published(str(name))
    except CapabilityError as error:
        raise RowError("bad_value", f"row {row_id!r}: {error}") from None


def lettered(options: Sequence[str], style: OptionStyle) -> list[str]:
    """Options with their letters.

    Args:
        options: As published.
        style: `as_is`; `dot` (`A. left`); `paren` (`(A) left`); `auto`: as they are if they bring letters in order,
            else `dot`.

    Raises:
        RowError: more options than letters.
    """
    if style == "as_is" or (style == "auto" and _bring_letters(options)):
        return list(options)
    if len(options) > len(LETTERS):
        raise RowError("bad_options", f"{len(options)} options are more than there are letters.")
    if style == "paren":
        return [f"({letter}) {option}" for letter, option in zip(LETTERS, options, strict=False)]
    return [f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=False)]


def _bring_letters(options: Sequence[str]) -> bool:
    """Whether all options begin with their letters, in order."""
    if options and letter_of(options[0]) != LETTERS[0]:
        return False  # the usual list, and there may be millions
    return len(options) <= len(LETTERS) and [letter_of(option) for option in options] == list(LETTERS[: len(options)])


def messages_for(row: Row, template: PromptTemplate, system: str | None) -> tuple[dict[str, Any], ...]:
    """Chat messages: the row's own, or system text if any, the media and, behind them, the user text.

    The media come first so that all questions on a clip share the longest prefix. A last turn
    of the assistant is the beginning of the answer, which the model goes on with.

    Args:
        row: The row.
        template: The recipe's.
        system: The recipe's; for rows that bring neither a system text nor a chat of their own.

    Raises:
        RowError: the template does not fit the row.
    """
    if row.messages is not None:
        return row.messages
    turns: list[dict[str, Any]] = []
    if (system_text := row.system or system) is not None:
        turns.append({"role": "system", "content": system_text})
    marks = [{"type": medium.modality} for medium in row.media]
    turns.append({"role": "user", "content": [*marks, {"type": "text", "text": template.user_text(row)}]})
    if row.prefill is not None:
        turns.append({"role": "assistant", "content": row.prefill})
    return tuple(turns)
