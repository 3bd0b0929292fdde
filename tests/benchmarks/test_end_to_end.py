"""A made-up benchmark all the way: published file -> import -> run -> score -> compare."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.benchmarks.test_import import TYPES, vsi_records, write_source
from tests.conftest import TINY_MODEL, vidpipe


@pytest.fixture
def benchmark(tmp_path: Path, make_clip: Callable[..., Path]) -> Path:
    records = vsi_records(30)
    for record in records:
        (tmp_path / record["dataset"]).mkdir(exist_ok=True)
        video = f"{record['dataset']}/{record['scene_name']}.mp4"
        if not (tmp_path / video).exists():
            make_clip(video, frames=8)
    source = write_source(tmp_path, records, "test.parquet")
    result = vidpipe("import", "vsi", "--src", source, "--media-root", tmp_path, "-o", tmp_path / "vsi", "--json")
    assert result.returncode == 0 and json.loads(result.stdout)["missing_videos"] == [], result.stderr
    return tmp_path / "vsi" / "recipe.yaml"


def answered(recipe: Path, run_dir: Path, texts: dict[str, str | None], *more: str) -> None:
    script = json.dumps({"text": "1", "texts": texts})
    settings = ("--set", f"model.path={TINY_MODEL}", "--set", "engine.name=fake", "--set", f"engine.args={script}")
    result = vidpipe("run", recipe, "-o", run_dir, *settings, "--set", "output.tolerance=2", *more)
    assert result.returncode == 0, result.stderr + result.stdout


def read(*arguments: object) -> dict[str, Any]:
    result = vidpipe(*arguments, "--json")
    assert result.returncode == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_import_run_score_compare(benchmark: Path, tmp_path: Path) -> None:
    records = vsi_records(30)
    right = {str(record["id"]): record["ground_truth"] for record in records}
    answered(benchmark, tmp_path / "a", {**right, "1": "about 3", "29": None})
    answered(benchmark, tmp_path / "b", {**right, "1": "about 3", "2": "99999"})
    table = read("score", tmp_path / "a", "--bootstrap", "--rows", tmp_path / "rows.jsonl")["tables"][0]
    assert (table["profile"], table["partial"]) == ("vsi.official", False)
    asked = read("score", tmp_path / "a")["asked"]
    assert asked["model"] == str(TINY_MODEL) and asked["generation"]["max_tokens"] == 16 and len(asked["prompt"]) == 16
    assert sorted(line["name"] for line in table["types"]) == sorted(TYPES)
    assert (table["overall"]["rows"], table["overall"]["unparsed"], table["overall"]["failed"]) == (30, 1, 1)
    low, high = table["overall"]["interval_95"]
    assert low < table["overall"]["score"] < 100 and low < table["bootstrap_95"][1] <= high + 5
    assert set(table["breakdowns"]) == {"dataset", "pruned"}
    scored = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert scored[1] | {"answer": ""} == {
        "id": "1", "profile": "vsi.official@1", "text": "about 3", "stripped": None, "extracted": None, "parsed": False,
        "answer": "", "score": 0.0,
    }  # fmt: skip
    kinder = read("score", tmp_path / "a" / "results.parquet", "--profile", "vsi.lenient", "--profile", "vsi.lmms_main")
    assert [found["overall"]["unparsed"] for found in kinder["tables"]] == [0, 0]
    found = read("compare", tmp_path / "a", tmp_path / "b")
    assert (found["matched"], found["won"], found["lost"]) == (30, ["29"], ["2"])
    assert found["overall"]["difference"] == pytest.approx(found["overall"]["score_b"] - found["overall"]["score_a"])
    assert found["speed_a"]["vision_asked"] > 0 and found["speed_a"]["rows_per_s"] > 0
    for command in (("score", tmp_path / "a"), ("compare", tmp_path / "a", tmp_path / "b")):
        shown = vidpipe(*command)
        assert shown.returncode == 0 and "vsi.official version 1" in shown.stdout and "30 rows" in shown.stdout
    prompt = "These are frames of a video."
    assert benchmark.read_text().count(prompt) == 1 and pq.read_table(tmp_path / "a" / "results.parquet").num_rows == 30


def test_an_unfinished_run_is_scored_and_marked_partial(benchmark: Path, tmp_path: Path) -> None:
    answered(benchmark, tmp_path / "a", {}, "--limit", "12")
    document = read("score", tmp_path / "a")
    table = document["tables"][0]
    assert table["partial"] and document["rows"] + document["missing"] in (12, 30)
    assert "PARTIAL" in vidpipe("score", tmp_path / "a").stdout


def test_what_the_recipe_says_of_scoring_holds_for_its_run(benchmark: Path, tmp_path: Path) -> None:
    keys = ["cluster_by=categories.dataset", "breakdowns=[answer_type, dataset]", "strip_reasoning=true"]
    reply = json.dumps({str(record["id"]): "<think>hm</think>4" for record in vsi_records(30)})
    answered(benchmark, tmp_path / "a", json.loads(reply), *(part for key in keys for part in ("--set", key)))
    document = read("score", tmp_path / "a")
    (table,) = document["tables"]
    assert document["strip_reasoning"] and table["profile"] == "vsi.official" and table["overall"]["clips"] == 2
    assert list(table["breakdowns"]) == ["answer_type", "dataset"]
    assert {line["name"] for line in table["breakdowns"]["answer_type"]} == {"choice", "number"}
    assert read("score", tmp_path / "a" / "results.parquet")["tables"] == document["tables"]
    # another way of scoring is no other run: the same command goes on
    answered(benchmark, tmp_path / "a", json.loads(reply), "--set", "cluster_by=null")
    answered(benchmark, tmp_path / "b", json.loads(reply), "--set", "cluster_by=nothing")
    result = vidpipe("score", tmp_path / "b")
    assert result.returncode == 2 and "there is no column 'nothing'" in result.stderr


def test_a_scorer_must_be_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": 1, "text": "A", "answer": "A"}\n')
    result = vidpipe("score", path)
    assert result.returncode == 2 and "--profile" in result.stderr and "vsi.official" in result.stderr


def test_csv_keeps_indices_and_categories_as_text_and_is_scored(tmp_path: Path, make_clip: Callable[..., Path]) -> None:
    make_clip("a.mp4", frames=8)
    (tmp_path / "rows.csv").write_text(
        "id,video,question,options,answer,answer_type,categories.hour\n"
        'x,a.mp4,Which?,"[""1"", ""2"", ""3""]",2,choice_index,01\n'
        'y,a.mp4,Which?,"[""1"", ""2"", ""3""]",0,choice_index,02\n'
    )
    (tmp_path / "recipe.yaml").write_text("manifest: rows.csv\nmodel: {path: x}\nscorer: nextqa.lmms_main\n")
    answered(tmp_path / "recipe.yaml", tmp_path / "run", {"x": "C", "y": "C"})
    (table,) = read("score", tmp_path / "run")["tables"]
    assert (table["overall"]["score"], table["overall"]["clips"]) == (50, 1)
    assert [(line["name"], line["score"]) for line in table["breakdowns"]["hour"]] == [("01", 100), ("02", 0)]
