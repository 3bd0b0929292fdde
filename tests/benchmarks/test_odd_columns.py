"""Rows whose columns or replies are of another kind than scorers read: each costs itself, none the table."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.benchmarks.test_score import PLAIN, rows, run, write
from tests.job.test_run import Make, go
from vidpipe.benchmarks.load import load_predictions
from vidpipe.benchmarks.predictions import Prediction
from vidpipe.benchmarks.profile import Question
from vidpipe.benchmarks.registry import get_profile
from vidpipe.benchmarks.score import make_table
from vidpipe.errors import ManifestError, RecipeError
from vidpipe.job.report_scores import scores_of


def scores(questions: list[Question], text: str | None, profile: str) -> list[float]:
    found = [Prediction(f"r{n}", text, question, "c") for n, question in enumerate(questions)]
    return [one.score for one in make_table(run(found), found, get_profile(profile))[1].scored]


def test_equal_replies_to_unlike_questions_are_scored_apart() -> None:
    cats = [Question("cat", answers=("kitty",)), Question("cat"), Question("cat", answers=("kitty",))]
    assert scores(cats, "kitty", "activitynetqa.exact") == [1, 0, 1]
    kinds = [Question("1", "", ("1", "2"), kind) for kind in ("choice_index", "choice_text", "choice_index")]
    assert scores(kinds, "B", "videomme.official") == [1, 0, 1]


@pytest.mark.parametrize("reply", ["[" * 5000 + "]", f"[{'1' * 400}]"])
def test_a_reply_that_repeats_itself_is_wrong_and_ends_nothing(reply: str) -> None:
    assert scores([Question(["1.20s"])], reply, "jumpscore.ov2") == [0]


@pytest.mark.parametrize(
    ("profile", "reply", "question"),
    [
        ("timelens.lmms_main.miou", "9" * 5000, Question([5, 10])),
        ("vsi.lenient", "answer " * 10_000, Question("4", "object_counting")),
    ],
)
def test_a_long_reply_that_repeats_itself_takes_no_minutes(profile: str, reply: str, question: Question) -> None:
    started = time.process_time()
    assert scores([question], reply, profile) == [0]
    assert time.process_time() - started < 5


@pytest.mark.parametrize("verdict", ["{'pred': 'yes', 'score': 1e999}", "{'score': " + "(" * 5000])
def test_a_verdict_that_is_no_number_is_unread(verdict: str) -> None:
    assert scores([Question("a", judgement=verdict)], "b", "activitynetqa.judge") == [0]


@pytest.mark.parametrize("answer", ["[5, 10]", "[[5, 10], [20, 30]]", [5, 10.0], [[5, 10]]])
def test_spans_may_be_written_as_json_text(answer: Any) -> None:
    for profile in ("timelens.lmms_main.miou", "charades.lmms_main.miou"):
        assert scores([Question(answer)], "5 - 10", profile) == [1]


@pytest.mark.parametrize("answer", [[], "5 to 10", [5], [5, None], [[]], [5, 10**400], {"s": 5}])
def test_an_answer_that_is_no_span_is_named(answer: Any) -> None:
    with pytest.raises(RecipeError, match=r"row 'r0' cannot be scored: answer .* is no span \[start, end\]"):
        scores([Question(answer)], "5 - 10", "timelens.lmms_main.miou")


def test_a_question_type_outside_of_a_mean_over_types_is_named() -> None:
    found = rows(["A"], "foo") + rows([None, "A"], "ego")
    with pytest.raises(RecipeError, match=r"mlvu.official: 1 row has the question_type 'foo'.* ego, needle,"):
        make_table(run(found), found, get_profile("mlvu.official"))


def test_a_row_without_a_reply_is_wrong_whatever_it_expects() -> None:
    assert scores([Question("none of them", "", ("a", "b"), "choice")], None, "videomme.official") == [0]


ODD = [{"answers": 5}, {"answers": "kitty"}, {"categories": "long"}, {"categories": ["long"]}, {"set_index": "first"}]


@pytest.mark.parametrize("odd", [*ODD, {"options": "AB"}, {"scorer": ["exact"]}])
def test_a_record_with_another_kind_of_column_is_named(tmp_path: Path, odd: dict[str, Any]) -> None:
    source = write(tmp_path / "a.jsonl", [{"id": 1, "text": "A", "answer": "A", **odd}])
    with pytest.raises(ManifestError, match=f"record 1: {next(iter(odd))} must be"):
        load_predictions(source)


@pytest.mark.parametrize("odd", ODD)
def test_a_row_with_another_kind_of_column_costs_itself(make_run: Make, odd: dict[str, Any]) -> None:
    row = {"id": "a", "video": "a.mp4", "question": "?", "answer": "fake", "categories": {"length": "short"}}
    result = go(make_run(rows=[row, {**row, "id": "b", "set_id": "s", "set_index": 0, **odd}]))
    found = {row["id"]: row for row in pq.read_table(result.results).to_pylist()}
    assert found["a"]["status"] == "ok"
    assert (found["b"]["status"], found["b"]["error_kind"]) == ("row_error", "bad_value")
    predictions = load_predictions(result.results.parent)
    table, _ = make_table(predictions, predictions.rows, PLAIN)
    assert (table.headline.estimate.value, table.headline.failed) == (0.5, 1)
    assert scores_of(predictions).none_because is None


def test_columns_of_other_tools_have_their_own_types(tmp_path: Path) -> None:
    columns = {
        "id": pa.array(["a"]),
        "text": pa.array(["A"]),
        "answer": pa.array(["A"]),
        "categories": pa.array([[("length", "long"), ("place", None)]], pa.map_(pa.string(), pa.string())),
        "options": pa.array([["A. x", "B. y"]]),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    (row,) = load_predictions(tmp_path / "a.parquet").rows
    assert (row.categories, row.question.options) == ({"length": "long"}, ("A. x", "B. y"))
    pq.write_table(pa.table({**columns, "options": pa.array([json.dumps("AB")])}), tmp_path / "b.parquet")
    with pytest.raises(ManifestError, match="row 'a': options must be a list of texts"):
        load_predictions(tmp_path / "b.parquet")
