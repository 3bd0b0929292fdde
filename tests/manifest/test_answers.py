"""Answers that are none of their options cost their row before anything is asked."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidpipe.errors import RowError
from vidpipe.manifest.answers import LETTERS, refuse_unfit_answer
from vidpipe.manifest.row import BadRow, Record
from vidpipe.manifest.rows import to_row

FOUR = ["left", "right", "up", "down"]
GOOD: list[tuple[list[str], Any, Any]] = [
    (FOUR, "D", "choice"),
    (FOUR, " b ", "choice"),
    (FOUR, 3, "choice_index"),
    (FOUR, "0", "choice_index"),  # from CSV
    (FOUR, -1, "choice_index"),  # a test set without answers
    (FOUR, "down", "choice_text"),
    (FOUR, "C", "choice_text"),
    (FOUR, "E", None),  # nobody said what it is
    (FOUR, "about four", "text"),
    (FOUR, None, "choice"),
    ([], "E", "choice"),  # the options stand in the question
    (["A. x", "B. y"], "B", "choice"),
    (["B. Obama", "D. Trump"], "B. Obama", None),  # initials
    (["E. Hopper"], "E. Hopper", "choice_text"),
]
BAD: list[tuple[list[str], Any, Any, str, str]] = [
    (FOUR, "E", "choice", "bad_value", "answer 'E' is none of the letters A to D"),
    (FOUR, "left", "choice", "bad_value", "none of the letters A to D"),
    (FOUR, 0, "choice", "bad_value", "answer 0"),
    (FOUR, "", "choice", "bad_value", "answer ''"),
    (FOUR, 4, "choice_index", "bad_value", "no index from 0 to 3"),
    (FOUR, -2, "choice_index", "bad_value", "no index from 0 to 3"),
    (FOUR, 1.5, "choice_index", "bad_value", "no index from 0 to 3"),
    (FOUR, True, "choice_index", "bad_value", "no index from 0 to 3"),
    (FOUR, "one", "choice_index", "bad_value", "no index from 0 to 3"),
    (FOUR, "Down", "choice_text", "bad_value", "none of the options ['left', 'right', 'up', 'down']"),
    (["B. x", "C. y"], "B", "choice", "bad_options", "bring the letters B to C; start them at A"),
    (["(B) x", "(C) y", "(D) z"], None, None, "bad_options", "bring the letters B to D"),
]


@pytest.mark.parametrize(("options", "answer", "answer_type"), GOOD)
def test_what_fits_is_let_through(options: list[str], answer: Any, answer_type: Any) -> None:
    refuse_unfit_answer(options, answer, answer_type)


@pytest.mark.parametrize(("options", "answer", "answer_type", "kind", "words"), BAD)
def test_what_does_not_fit_costs_its_row(
    options: list[str], answer: Any, answer_type: Any, kind: str, words: str
) -> None:
    values = {
        "id": "q1",
        "video": "a.mp4",
        "question": "Which?",
        "options": options,
        "answer": answer,
        "answer_type": answer_type,
    }
    row = to_row(Record(3, values), 0, recipe_has_prompt=False)
    assert isinstance(row, BadRow) and row.fault.kind == kind
    assert words in row.fault.message and row.fault.message.startswith("line 3, row 'q1': ")


@given(st.lists(st.text(max_size=4), min_size=1, max_size=30), st.integers(0, 40))
def test_exactly_the_letters_of_the_options_are_answers(options: list[str], place: int) -> None:
    plain = [f"x{option}" for option in options]
    letter = LETTERS[place % len(LETTERS)]
    fits = LETTERS.index(letter) < len(options)
    try:
        refuse_unfit_answer(plain, letter, "choice")
    except RowError:
        assert not fits
    else:
        assert fits
