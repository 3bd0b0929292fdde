"""Rows that are asked again: by which rule, with what changes, how often, and what is recorded of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import vidpipe
from vidpipe.errors import CapabilityError, RecipeError
from vidpipe.job.again import rule_for
from vidpipe.job.prospect import look_ahead
from vidpipe.recipe.load import load_recipe
from vidpipe.recipe.schema import RetryRule
from vidpipe.record.row import OutputRow, ReplyRecord, standing

Make = Callable[..., Path]
LOOP = "no and " * 20
LONGER = {"when": ["length"], "generation": {"max_tokens": 8}}
LONGEST = {"when": ["length"], "generation": {"max_tokens": 16}}
WARMER = {"when": ["repetition", "empty"], "times": 2, "generation": {"temperature": 0.7}}
SHORTER = {"when": ["prompt_too_long"], "sampling": {"max_frames": 4}}


def outcome(status: Any = "ok", *flags: str, kind: str | None = None, text: str | None = "t") -> OutputRow:
    return OutputRow("r", None, status, error_kind=kind, text=text, reply=ReplyRecord(list(flags)))


def test_the_first_rule_that_fits_and_is_not_used_up() -> None:
    rules = [RetryRule(**rule) for rule in (LONGER, LONGEST, WARMER)]  # type: ignore[arg-type]
    cut, loop, good = outcome("length"), outcome("ok", "repetition"), outcome()
    assert rule_for(rules, []) is None and rule_for(rules, [good]) is None
    assert rule_for(rules, [cut]) is rules[0] and rule_for(rules, [cut, cut]) is rules[1]
    assert rule_for(rules, [cut, cut, cut]) is None and rule_for(rules, [cut, loop]) is rules[2]
    assert rule_for(rules, [loop, loop]) is rules[2] and rule_for(rules, [loop, loop, loop]) is None
    assert rule_for(rules, [outcome("length", "repetition")]) is rules[0], "in the recipe's order"


@given(st.lists(st.sampled_from(["length", "ok", "row_error"]), min_size=1))
def test_a_row_is_asked_a_bounded_number_of_times(statuses: list[str]) -> None:
    rules = [RetryRule(when=["length"], times=3, generation={"seed": 1}), RetryRule(when=["no_completion"], times=2)]
    tries = [outcome(s, kind="no_completion" if s == "row_error" else None) for s in statuses]
    asked = 1
    while asked <= len(tries) and rule_for(rules, tries[:asked]):
        asked += 1
    assert asked <= 6


def test_the_last_try_with_a_reply_stands() -> None:
    tries = [outcome("length", text="a b"), outcome("row_error", kind="prompt_too_long", text=None)]
    row = standing(tries)
    assert row.text == "a b" and row.status == "length"
    assert [(t.status, t.error_kind, t.text) for t in row.other_tries] == [("row_error", "prompt_too_long", None)]
    assert standing(tries[1:]).status == "row_error" and standing(tries[:1]).other_tries == []


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ({"when": ["length"]}, r"rules\.0: .*the same reply"),
        ({"when": ["prompt_too_long"], "generation": {"max_tokens": 2}}, "other frames only"),
        ({"when": ["long"], "generation": {"max_tokens": 2}}, "'length'"),
        ({"when": ["length"], "generation": {"max_token": 2}}, r"generation\.max_token"),
        ({"when": ["length"], "sampling": {"fps": "2"}}, r"sampling\.fps"),
        ({"when": [], "generation": {"max_tokens": 2}}, "when"),
    ],
)
def test_rules_that_cannot_help_are_refused(make_run: Make, rule: dict[str, Any], why: str) -> None:
    with pytest.raises(RecipeError, match=why):
        load_recipe(make_run(retry={"rules": [rule]}), [])


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ({"when": ["length"], "generation": {"max_tokens": 64}}, r"rules\[0\]: it changes nothing"),
        ({"when": ["length"], "sampling": {"num_frames": 8}}, r"rules\[0\]: .*exclude each other"),
    ],
)
def test_rules_that_do_not_fit_the_recipe_are_refused(make_run: Make, rule: dict[str, Any], why: str) -> None:
    with pytest.raises(CapabilityError, match=why):
        look_ahead(load_recipe(make_run(retry={"rules": [rule]}, sampling={"fps": 2.0}), []))


def results(recipe: Path) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    table = pq.read_table(recipe.parent / "run" / "results.parquet")
    settings = json.loads(table.schema.metadata[b"vidpipe.resolved"])
    return {row["id"]: row for row in table.to_pylist()}, settings


def test_what_is_asked_again_and_what_is_recorded(make_run: Make) -> None:
    ids = ("good", "cut", "always", "loop", "still", "mute", "long")
    rows: list[dict[str, Any]] = [{"id": name, "video": "a.mp4", "question": "?"} for name in ids]
    rows[-1]["sampling.fps"] = 4
    for row in rows[3:5]:  # else they are cut first
        row["generation.max_tokens"] = 64
    script = {
        "texts": {
            "cut": "1 2 3 4 5 6 7",
            "always": " ".join(map(str, range(40))),
            "loop": LOOP,
            "still": LOOP,
            "mute": None,
        },
        "sampled": {"loop": "seed {seed}", "still": LOOP},
        "most_frames": 8,
    }
    rules = [LONGER, LONGEST, WARMER, SHORTER, {"when": ["no_completion"]}]
    recipe = make_run(rows, script=script, generation={"max_tokens": 4}, retry={"rules": rules})
    done = vidpipe("run", recipe, "-o", recipe.parent / "run")
    assert done.returncode == 1, done.stderr
    found, settings = results(recipe)
    told = {name: (row["status"], row["attempt"], len(row["other_tries"])) for name, row in found.items()}
    assert told == {
        "good": ("ok", 1, 0), "cut": ("ok", 2, 1), "always": ("length", 3, 2), "loop": ("ok", 2, 1),
        "still": ("ok", 3, 2), "mute": ("row_error", 2, 1), "long": ("ok", 2, 1),
    }  # fmt: skip
    assert found["cut"]["text"] == "1 2 3 4 5 6 7" and found["cut"]["other_tries"][0]["text"] == "1 2 3 4"
    assert found["cut"]["other_tries"][0]["status"] == "length" and found["cut"]["other_tries"][0]["tokens_out"] == 4
    asked = [settings[sha]["generation"]["max_tokens"] for sha in shas(found["always"])]
    assert asked == [4, 8, 16]
    assert found["loop"]["text"] == "seed 1" and found["still"]["reply"]["flags"] == ["repetition"]
    assert [settings[sha]["generation"]["seed"] for sha in shas(found["still"])] == [None, 1, 2]
    assert found["mute"]["other_tries"][0]["error_kind"] == found["mute"]["error_kind"] == "no_completion"
    assert found["long"]["frames"]["count"] == 4 and found["long"]["other_tries"][0]["error_kind"] == "prompt_too_long"
    assert "6 rows were asked again" in done.stdout


def shas(row: dict[str, Any]) -> list[str]:
    return [*(one["resolved_sha"] for one in row["other_tries"]), row["resolved"]["sha"]]


def test_a_killed_run_goes_on_with_the_tries_that_were_left(make_run: Make) -> None:
    rows = [{"id": name, "video": "a.mp4", "question": "?"} for name in ("cut", "kills")]
    script = {"texts": {"cut": "1 2 3 4 5 6 7 8 9"}, "order": ["cut", "kills", "cut"], "crash_on": ["kills"]}
    recipe = make_run(
        rows,
        script=script,
        generation={"max_tokens": 4},
        retry={"attempts": 1, "rules": [LONGER]},
        output={"tolerance": 1},
    )
    assert vidpipe("run", recipe, "-o", recipe.parent / "run").returncode == -9
    assert vidpipe("run", recipe, "-o", recipe.parent / "run").returncode == 0
    found, _ = results(recipe)
    assert found["kills"]["error_kind"] == "poison_row"
    assert found["cut"]["text"] == "1 2 3 4 5 6 7 8" and found["cut"]["attempt"] == 2, "asked with the rule's tokens"
    assert [one["text"] for one in found["cut"]["other_tries"]] == ["1 2 3 4"]


def test_other_rules_are_another_run(make_run: Make) -> None:
    recipe = make_run(retry={"rules": [LONGER]})
    assert vidpipe("run", recipe, "-o", recipe.parent / "run").returncode == 0
    changed = vidpipe("run", make_run(retry={"rules": [LONGEST]}), "-o", recipe.parent / "run")
    assert changed.returncode == 2 and "retry" in changed.stderr
