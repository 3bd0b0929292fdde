"""Tables and comparisons from made-up replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.benchmarks.test_import import TYPES
from vidpipe.benchmarks.compare import compare
from vidpipe.benchmarks.load import load_predictions
from vidpipe.benchmarks.predictions import Prediction, Predictions
from vidpipe.benchmarks.profile import Profile, Question, Scored
from vidpipe.benchmarks.registry import get_profile
from vidpipe.benchmarks.score import make_table
from vidpipe.benchmarks.vsi import NUMBER_TYPES
from vidpipe.cli.app import app
from vidpipe.errors import ManifestError, RecipeError

PLAIN = Profile("test.plain", 1, "this test", lambda text, question: Scored(float(text == question.answer), text))


def rows(texts: list[str | None], question_type: str = "route_planning", answer: Any = "A") -> list[Prediction]:
    return [
        Prediction(f"{question_type}{i}", text, Question(answer, question_type), f"clip{i // 2}")
        for i, text in enumerate(texts)
    ]


def run(found: list[Prediction], expected: int | None = None) -> Predictions:
    return Predictions("made up", found, len(found) if expected is None else expected)


def test_groups_weigh_the_same_whatever_their_rows() -> None:
    found = [
        row for i, name in enumerate(TYPES) for row in rows(["4" if name in NUMBER_TYPES else "A"] * (i + 1), name)
    ]
    found = [
        Prediction(row.id, row.text, Question("4" if row.text == "4" else "A", row.question.question_type), row.clip)
        for row in found
    ]
    wrong = [
        Prediction(row.id, "B" if row.question.question_type.endswith("easy") else row.text, row.question, row.clip)
        for row in found
    ]
    table, _ = make_table(run(wrong), wrong, get_profile("vsi.official"))
    assert table.headline.estimate.value == pytest.approx((7 + 2 / 3) / 8)
    assert not table.partial and len(table.groups) == 8 and len(table.types) == 10


def test_failed_unparsed_cut_and_unscored_rows_are_counted_and_wrong() -> None:
    found = [*rows(["A", "(A)", None, "A"]), Prediction("x", "A", Question(None, "route_planning"), "c")]
    table, scored = make_table(run(found), found, get_profile("vsi.official"))
    whole = table.headline
    assert (whole.estimate.value, whole.estimate.rows, whole.estimate.clips) == (0.5, 4, 2)
    assert (whole.unparsed, whole.failed, table.unscored) == (1, 1, 1)
    assert [one.score for one in scored.scored] == [1, 0, 0, 1]


def test_a_table_with_types_or_rows_missing_is_partial() -> None:
    found = rows(["A", "A"])
    table, _ = make_table(run(found), found, get_profile("vsi.official"))
    assert table.partial and len(table.missing_types) == 9
    table, _ = make_table(run(found, expected=3), found, PLAIN)
    assert table.partial and table.missing_rows == 1
    assert not make_table(run(found), found, PLAIN)[0].partial


def test_what_cannot_be_scored_is_refused_in_words() -> None:
    with pytest.raises(RecipeError, match=r"row 'captions0' cannot be scored.*'captions' is none"):
        make_table(run([]), rows(["A"], "captions"), get_profile("vsi.official"))
    with pytest.raises(RecipeError, match="none of the 1 rows has an answer"):
        make_table(run([]), rows(["A"], answer=None), PLAIN)


def test_reasoning_is_taken_out_only_when_asked() -> None:
    found = rows(["<think>B?</think>A"])
    assert make_table(run(found), found, PLAIN)[0].headline.estimate.value == 0
    table, _ = make_table(run(found), found, PLAIN, lambda text: text.partition("</think>")[2])
    assert table.headline.estimate.value == 1


def test_a_comparison_pairs_rows_and_clusters_their_differences() -> None:
    a, b = rows(["A", "B", "B", "A", "B", "B"]), rows(["A", "A", "A", "A", "B", "A"])
    found = compare(run(a), run([*b, *rows(["A"], "more")]), PLAIN)
    assert (found.matched, found.only_a, found.only_b) == (6, 0, 1)
    assert found.overall.difference.value == pytest.approx(0.5) and found.overall.difference.clips == 3
    assert (found.overall.wins, found.overall.losses) == (3, 0) and found.mcnemar_p == pytest.approx(0.25)
    assert found.overall.difference.stderr == 0  # every clip gains the same
    assert found.won == ("route_planning1", "route_planning2", "route_planning5") and found.lost == ()


def test_runs_of_other_questions_are_not_compared() -> None:
    with pytest.raises(RecipeError, match="other questions"):
        compare(run(rows(["A"])), run(rows(["A"], answer="B")), PLAIN)
    with pytest.raises(RecipeError, match="no row in common"):
        compare(run(rows(["A"])), run(rows(["A"], "other")), PLAIN)


def write(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_predictions_of_other_tools(tmp_path: Path) -> None:
    ours = write(
        tmp_path / "a.jsonl",
        [{"id": 1, "prediction": "B", "ground_truth": "B", "question_type": "route_planning", "options": ["A. x"]}],
    )
    (row,) = load_predictions(ours).rows
    assert (row.id, row.text, row.question) == ("1", "B", Question("B", "route_planning", ("A. x",)))
    doc = {"id": 7, "dataset": "scannet", "scene_name": "s", "question_type": "route_planning", "question": "?"}
    sample = {"doc_id": 0, "doc": {**doc, "ground_truth": "A", "options": ["A. x"]}, "filtered_resps": ["A"]}
    logs = write(tmp_path / "samples.jsonl", [sample])
    (row,) = load_predictions(logs, "vsi").rows
    assert (row.id, row.clip, row.text) == ("7", "scannet/s", "A")
    result = CliRunner().invoke(app, ["score", str(logs), "--profile", "vsi.official", "--json"])
    assert json.loads(result.stdout)["tables"][0]["overall"]["score"] == 100


def test_broken_files_of_predictions_are_refused(tmp_path: Path) -> None:
    for records in ([{"id": 1, "text": "A"}] * 2, [{"text": "A"}], [{"id": 1, "text": 4}]):
        with pytest.raises(ManifestError):
            load_predictions(write(tmp_path / "a.jsonl", records))
    (tmp_path / "x.parquet").write_text("no")
    with pytest.raises(ManifestError):
        load_predictions(tmp_path / "x.parquet")
    for wrong in (tmp_path, tmp_path / "x.txt"):
        with pytest.raises(RecipeError):
            load_predictions(wrong)


def test_what_each_row_scored_is_json_even_for_a_reading_of_nan(tmp_path: Path) -> None:
    record = {"id": "a", "text": "nan", "answer": "4", "question_type": "object_counting"}
    source, out = write(tmp_path / "a.jsonl", [record]), tmp_path / "rows.jsonl"
    result = CliRunner().invoke(app, ["score", str(source), "--profile", "vsi.official", "--rows", str(out)])
    assert result.exit_code == 0, result.output
    row = json.loads(out.read_text(), parse_constant=pytest.fail)
    assert (row["extracted"], row["score"], row["profile"]) == ("nan", 0, "vsi.official@1")


def test_several_profiles_and_several_scorers(tmp_path: Path) -> None:
    records = [
        {"id": "a", "text": "(B)", "answer": "B", "question_type": "route_planning", "scorer": "vsi.official"},
        {"id": "b", "text": "B", "answer": "B", "scorer": "videomme.official"},
    ]
    source = write(tmp_path / "a.jsonl", records)
    tables = json.loads(CliRunner().invoke(app, ["score", str(source), "--json"]).stdout)["tables"]
    assert [(t["profile"], t["overall"]["score"]) for t in tables] == [("vsi.official", 0), ("videomme.official", 100)]
    result = CliRunner().invoke(app, ["compare", str(source), str(source)])
    assert isinstance(result.exception, RecipeError | SystemExit) and result.exit_code != 0
