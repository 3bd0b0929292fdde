"""Manifests with every fault that users report, as far as the whole program is concerned: what `vidpipe check` says,
and what stands in the results of a run with the scripted engine.

`manifest_cases.json` says what each file of `manifest/` must come to; the files name clips of `video/`.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from tests.conftest import TINY_MODEL, vidpipe
from vidpipe.cli.app import app

FOLDER = Path(__file__).parent
CASES = {case["id"]: case for case in json.loads((FOLDER / "manifest_cases.json").read_text())}
REFUSED = [name for name, case in CASES.items() if name.startswith("m_") and case["expect"]["outcome"] == "error"]
READ = [name for name, case in CASES.items() if name.startswith("m_") and case["expect"]["outcome"] == "ok"]
FAULTY = {
    "m_lone_surrogate": {"q1": "bad_value"},
    "m_missing_key_row": {"q2": "missing_field"},
    "m_nested": {"q1": "bad_value"},
    "m_options": {"q3": "bad_options", "q5": "bad_options"},
    "m_long_question": {"q2": "prompt_too_long"},
    "m_urls": {"q1": "not_found", "q2": "protocol", "q3": "protocol", "q4": "not_found", "q5": "protocol"},
    "m_windows": {"q2": "bad_window", "q3": "bad_window", "q4": "bad_window", "q5": "bad_window", "q6": "bad_window"},
    "m_parquet": {"2": "missing_field", "(line 3)": "bad_id"},
}
"""The rows that cannot be answered, and why; all others of these files are answered."""


def recipe_of(folder: Path, name: str, script: dict[str, Any]) -> Path:
    values = {
        "manifest": str(FOLDER / CASES[name]["file"]),
        "model": {"path": str(TINY_MODEL)},
        "engine": {"name": "fake", "args": script},
    }
    path = folder / "recipe.yaml"
    path.write_text(json.dumps(values))
    return path


def faults_of(recipe: Path) -> tuple[int, dict[str, Any]]:
    result = CliRunner().invoke(app, ["check", str(recipe), "--json"])
    return result.exit_code, json.loads(result.stdout)


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_cannot_be_trusted_is_refused_before_anything_starts(tmp_path: Path, name: str) -> None:
    expect = CASES[name]["expect"]
    recipe = recipe_of(tmp_path, name, {})
    code, document = faults_of(recipe)
    first = document["faults"][0]
    assert code == 2 and first["kind"] == expect["error_kind"]
    for word in expect.get("must_name", ()):
        assert word in first["message"]
    result = vidpipe("run", recipe, "-o", tmp_path / "run")
    assert result.returncode == 2 and first["message"] in result.stderr and "Traceback" not in result.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", READ)
def test_a_file_that_can_be_read_costs_its_bad_rows_only(tmp_path: Path, name: str) -> None:
    expect, faulty = CASES[name]["expect"], FAULTY.get(name, {})
    recipe = recipe_of(tmp_path, name, {"refuse": {"q2": "prompt_too_long"}} if name == "m_long_question" else {})
    code, document = faults_of(recipe)
    assert code == 0 and document["rows"] == expect["rows"]
    started = time.monotonic()
    result = vidpipe("run", recipe, "-o", tmp_path / "run")
    assert time.monotonic() - started < expect.get("max_seconds", 60)
    assert result.returncode == (1 if faulty else 0), result.stderr
    rows = pq.read_table(tmp_path / "run" / "results.parquet").to_pylist()
    assert len(rows) == expect["rows"]
    if "ids" in expect:
        assert [row["id"] for row in rows] == expect["ids"]
    if "questions" in expect:
        assert [row["question"] for row in rows] == expect["questions"]
    if "answers" in expect:
        found = [None if row["answer"] is None else json.loads(row["answer"]) for row in rows]
        assert [(type(value), value) for value in found] == [(type(value), value) for value in expect["answers"]]
    assert {row["id"]: row["error_kind"] for row in rows if row["error_kind"]} == faulty
    assert all(row["text"] == "fake" for row in rows if row["id"] not in faulty)
    if "q1_frames_in_window" in expect:
        window = expect["q1_frames_in_window"]
        assert set(rows[0]["frames"]["indices"]) <= set(window), "the rest is outside the window"
    for fault in document["faults"]:
        assert fault["kind"] == faulty.get(fault["id"] or f"(line {fault['line']})")


def test_two_results_for_one_row_are_not_merged(tmp_path: Path) -> None:
    """`shards_dup` (part 1 without its further column, which is refused for itself): rows a, b and rows b, c."""
    recipe = recipe_of(tmp_path, "o_shards_dup", {})
    parts = sorted((FOLDER / CASES["o_shards_dup"]["file"]).glob("*.parquet"))
    for number, part in enumerate(parts):
        table = pq.read_table(part).select(["id", "score"])
        named = [{**row, "video": "video/cfr_ok.mp4", "question": "?"} for row in table.to_pylist()]
        manifest = tmp_path / f"{number}.jsonl"
        manifest.write_text("".join(json.dumps(row) + "\n" for row in named))
        sets = [f"manifest={manifest}", f"media_root={FOLDER}"]
        result = vidpipe("run", recipe, "-o", tmp_path / f"run{number}", "--set", sets[0], "--set", sets[1])
        assert result.returncode == 0, result.stderr
    merged = vidpipe("merge", tmp_path / "run0", tmp_path / "run1", "-o", tmp_path / "all.parquet")
    assert merged.returncode == 2 and "'b'" in merged.stderr and not (tmp_path / "all.parquet").exists()


def test_whatever_a_model_says_is_written_and_read_back(tmp_path: Path) -> None:
    replies = json.loads((FOLDER / CASES["o_texts"]["file"]).read_text())
    scores = pa.table(
        {
            "id": [row["id"] for row in replies],
            "video": ["video/cfr_ok.mp4"] * len(replies),
            "question": ["?"] * len(replies),
            "score": pa.array([row["score"] for row in replies], pa.float64(), from_pandas=False),
        }
    )
    pq.write_table(scores, tmp_path / "rows.parquet")
    recipe = recipe_of(tmp_path, "o_texts", {"texts": {row["id"]: row["text"] for row in replies}})
    sets = [f"manifest={tmp_path / 'rows.parquet'}", f"media_root={FOLDER}"]
    result = vidpipe("run", recipe, "-o", tmp_path / "run", "--set", sets[0], "--set", sets[1])
    assert result.returncode == 1, result.stderr
    rows = {row["id"]: row for row in pq.read_table(tmp_path / "run" / "results.parquet").to_pylist()}
    assert {name: row["text"] for name, row in rows.items()} == {
        "n1": "half \ufffd pair",
        "n2": "ok",
        "n3": "nul \0 in text",
        "n4": "",
        "n5": None,
    }
    assert {name: row["error_kind"] for name, row in rows.items() if row["error_kind"]} == {"n5": "no_completion"}
    assert [row["score"] for row in rows.values()] == [None, '"NaN"', '"Infinity"', "-0.0", "1.0"], "strict JSON"
