"""Single values: what is read, and how a fault is told."""

from __future__ import annotations

from typing import Any

import pytest

from vidpipe.errors import RowError
from vidpipe.manifest.cells import clean_text, number, text, texts, whole_number, word

VALUES: dict[str, Any] = {"x": None}


def test_nothing_is_read_where_a_column_is_null() -> None:
    assert [read(VALUES, "x") for read in (text, number, whole_number, texts)] == [None, None, None, ()]
    assert word(VALUES, "x", ("a", "b")) is None


@pytest.mark.parametrize(("value", "expected"), [(0, 0), ("0", 0), (1, 1), (7.0, 7), ("12", 12), (-0.0, 0)])
def test_whole_numbers_begin_at_0(value: Any, expected: int) -> None:
    found = whole_number({"x": value}, "x")
    assert found == expected and type(found) is int


@pytest.mark.parametrize("value", [-1, "-1", 0.5, 1.5, -0.5, 2**53, 1e30, 10**30])
def test_other_numbers_are_not_whole(value: Any) -> None:
    with pytest.raises(RowError, match=r"x must be a whole number from 0 to 2\^53, found ") as caught:
        whole_number({"x": value}, "x")
    assert caught.value.kind == "bad_value" and repr(value) in str(caught.value)


@pytest.mark.parametrize("value", [True, False, "", "three", "nan", "inf", float("inf"), 10**400, [1], {}])
def test_what_is_no_finite_number_is_told_as_found(value: Any) -> None:
    with pytest.raises(RowError, match="x must be a number, found ") as caught:
        number({"x": value}, "x", "bad_window")
    assert caught.value.kind == "bad_window" and repr(value) in str(caught.value)


@pytest.mark.parametrize(("value", "place"), [("\ud83d", 1), ("abc\ud83d", 4), ("\u00e9\u00e9\ud83d\u00e9", 3)])
def test_half_a_surrogate_pair_is_told_with_its_place(value: str, place: int) -> None:
    with pytest.raises(RowError, match=f"x holds half a surrogate pair at character {place}, ") as caught:
        clean_text("x", value, "bad_id")
    assert caught.value.kind == "bad_id"


def test_a_word_that_is_not_of_the_list_is_told_with_all_that_are() -> None:
    assert word({"x": "c"}, "x", ("a", "b", "c")) == "c"
    with pytest.raises(RowError, match="x must be a, b or c, found 'd'"):
        word({"x": "d"}, "x", ("a", "b", "c"))


def test_texts_are_a_list_or_one() -> None:
    assert [texts({"x": value}, "x") for value in ("a", ["a"], ["a", "b"], [])] == [("a",), ("a",), ("a", "b"), ()]
    for value in (3, [""], ["a", 3], {"a": "b"}):
        with pytest.raises(RowError, match="x must be a text or a list of texts, found "):
            texts({"x": value}, "x")
