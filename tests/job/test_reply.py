"""Marks on replies: loops, characters, forms; and through a whole run into the results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import vidpipe
from vidpipe.errors import RecipeError
from vidpipe.job.reply import TAIL_CHARS, ends_in_loop, judge
from vidpipe.recipe.load import build_recipe
from vidpipe.recipe.schema import Generation

PERSON = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}


@given(st.text(max_size=30), st.text("ab c.\n", min_size=1, max_size=40).filter(str.strip), st.integers(0, 39))
def test_a_piece_again_and_again_is_a_loop_however_it_ends(before: str, piece: str, cut: int) -> None:
    text = before + piece * (60 // len(piece) + 4) + piece[: cut % len(piece)]
    assert ends_in_loop(text.rstrip() + "\n")


@given(st.text("ab", max_size=300))
def test_loops_are_those_that_a_plain_search_finds(text: str) -> None:
    end = text.rstrip()
    plain = any(
        len(end) >= (needed := max(60, 4 * period))
        and all(end[-i] == end[-i - period] for i in range(1, needed - period + 1))
        for period in range(1, len(end) // 4 + 1)
    )
    assert ends_in_loop(text) == plain


def test_what_is_no_loop() -> None:
    words = " ".join(f"Frame {i} shows a red ball." for i in range(40))
    assert not ends_in_loop(words), "each sentence differs"
    assert not ends_in_loop("no, no, no, no") and not ends_in_loop("") and not ends_in_loop("\n" * 500)
    assert not ends_in_loop("ha" * 200 + " and then the clip goes on with something else entirely"), "it got out of it"
    assert ends_in_loop("x" * 1_000_000)
    assert ends_in_loop("".join(map(str, range(TAIL_CHARS))) + "The man walks to the left side. " * TAIL_CHARS)


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("A plain answer.\r\n\tyes", []),
        ("", ["empty"]),
        (" \n", ["empty"]),
        ("nul \0", ["control_characters"]),
        ("\x1b[31mred\x1b[0m", ["control_characters"]),
        ("half \ud83d pair", ["surrogate"]),
        ("😀 \u2028 é", []),
        ("\0" * 100, ["control_characters", "repetition"]),
    ],
)
def test_flags(text: str, flags: list[str]) -> None:
    reply = judge(text, Generation())
    assert reply.flags == flags and reply.parse is None


@pytest.mark.parametrize(
    ("form", "text", "state"),
    [
        ({"json_schema": PERSON}, '{"age": 3}', "ok"),
        ({"json_schema": PERSON}, '{"age": "3"}', "mismatch"),
        ({"json_schema": PERSON}, '{"age": 3', "not_json"),
        ({"json_schema": PERSON}, "[" * 100_000, "not_json"),
        ({"json_schema": {"$ref": "http://127.0.0.1:9/x.json"}}, "{}", "mismatch"),
        ({"choice": ["yes", "no"]}, "yes", "ok"),
        ({"choice": ["yes", "no"]}, "yes.", "mismatch"),
        ({"regex": "[A-D]"}, "B", "ok"),
        ({"regex": "[A-D]"}, "B\n", "mismatch"),
    ],
)
def test_parse_states(form: dict[str, Any], text: str, state: str) -> None:
    assert judge(text, Generation(**form)).parse == state


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"json_schema": PERSON, "regex": "x"}, "json_schema and regex exclude each other"),
        ({"json_schema": {"type": "objekt"}}, "not a JSON schema: 'objekt' is not valid"),
        ({"regex": "(["}, "not a regular expression"),
        ({"choice": []}, "at least 1 item"),
    ],
)
def test_forms_that_cannot_be_held_to(form: dict[str, Any], words: str) -> None:
    raw = {"manifest": "m.jsonl", "model": {"path": "x"}, "generation": form}
    with pytest.raises(RecipeError, match=words.replace("(", r"\(")):
        build_recipe(raw, [], text="", folder=Path(), name="r", source="r.yaml")


def test_they_stand_in_the_results_and_in_the_summary(make_run: Callable[..., Path], tmp_path: Path) -> None:
    rows = [{"id": f"r{i}", "video": "a.mp4", "question": "?"} for i in range(3)]
    rows[2]["generation"] = {"choice": ["yes"], "json_schema": None}  # type: ignore[assignment]
    script = {"texts": {"r0": '{"age": 3}', "r1": "no " * 100, "r2": "yes"}}
    recipe = make_run(rows, script=script, generation={"json_schema": PERSON})
    result = vidpipe("run", recipe, "-o", tmp_path / "run")
    assert result.returncode == 0, result.stderr
    table = pq.read_table(tmp_path / "run" / "results.parquet")
    assert table["reply"].to_pylist() == [
        {"flags": [], "parse": "ok"},
        {"flags": ["repetition"], "parse": "not_json"},
        {"flags": [], "parse": "ok"},
    ]
    assert "1 reply with reply.parse not_json, for example row r1" in result.stdout
    assert "1 reply with reply.flags repetition, for example row r1" in result.stdout
