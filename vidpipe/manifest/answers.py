"""Whether a row's options and its answer fit together; where they do not, no reply could be right. Pure.

Rule of the manifest: an answer of `answer_type` `choice`, `choice_index` or `choice_text` is one of the
options, and options that bring letters start at A.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from vidpipe.errors import RowError

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
ABSENT_INDEX = -1
"""Test sets without published answers have it as `choice_index` (LongVideoBench)."""
_LETTERED = re.compile(r"\s*\(?([A-Z])[.):]")


def letter_of(option: str) -> str | None:
    """The letter that an option brings along (`A. left`, `(A) left`, `A: left`); None without one."""
    match = _LETTERED.match(option)
    return None if match is None else match[1]


def refuse_unfit_answer(options: Sequence[str], answer: Any, answer_type: Any) -> None:
    """Refuse an answer outside of the row's options, and options whose letters start elsewhere.

    Args:
        options: As published; rows without any are not judged.
        answer: Of any type, as read; None: the row has none.
        answer_type: The row's word for it; other words than the three above, and None, say nothing here.

    Raises:
        RowError: `bad_options` or `bad_value`.
    """
    if not options:
        return
    _refuse_late_letters(options)
    if answer is None:
        return
    if answer_type == "choice":
        letter = answer.strip().upper() if isinstance(answer, str) else ""
        if len(letter) != 1 or letter not in LETTERS[: len(options)]:
            raise RowError("bad_value", f"answer {answer!r} is none of the letters {_letters(options)} of the options.")
    elif answer_type == "choice_index":
        index = _index(answer)
        if index is None or not (index == ABSENT_INDEX or 0 <= index < len(options)):
            raise RowError("bad_value", f"answer {answer!r} is no index from 0 to {len(options) - 1} of the options.")
    elif answer_type == "choice_text" and answer not in options:
        letter = answer.strip().upper() if isinstance(answer, str) else ""
        if len(letter) != 1 or letter not in LETTERS[: len(options)]:
            raise RowError("bad_value", f"answer {answer!r} is none of the options {list(options)}.")


def _refuse_late_letters(options: Sequence[str]) -> None:
    first = letter_of(options[0])
    if first is None or first == "A":
        return
    brought = "".join(letter_of(option) or "" for option in options)
    if len(brought) == len(options) > 1 and LETTERS.startswith(brought, LETTERS.index(first)):
        raise RowError("bad_options", f"the options bring the letters {brought[0]} to {brought[-1]}; start them at A.")


def _letters(options: Sequence[str]) -> str:
    return f"A to {LETTERS[min(len(options), len(LETTERS)) - 1]}"


def _index(answer: Any) -> int | None:
    """From CSV an index comes as text."""
    if isinstance(answer, bool) or not isinstance(answer, str | int | float):
        return None
    try:
        return int(answer) if int(answer) == float(answer) else None
    except (ValueError, OverflowError):
        return None
