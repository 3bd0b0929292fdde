"""Engines that misbehave in the ways that users report: no row is lost, doubled or blamed for them.

`engine/*.json` hold the requests and what the engine does with them, as published for
this case; `SCRIPTS` says the same in the words of the scripted engine.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.conftest import vidpipe
from vidpipe.record.status import read_status

Make = Callable[..., Path]
FOLDER = Path(__file__).parent / "engine"
SPECIAL = {"outputs=[]": ("texts", None), "text=''": ("texts", ""), "finish_reason=length": ("lengths", None)}


def script_of(case: dict[str, Any]) -> dict[str, Any]:
    """The case's script in the words of `vidpipe.engine.fake.Script`."""
    given = case["script"]
    script: dict[str, Any] = {"texts": {}, "lengths": []}
    if "outputs" in given:
        script["order"] = given["outputs"]
        script["texts"] = {name: f"text {name}" for name in case["requests"]}
    for name, what in given.get("special", {}).items():
        kind, text = SPECIAL[what]
        if kind == "texts":
            script["texts"][name] = text
        else:
            script["lengths"].append(name)
    script |= {key: given[key] for key in ("die_after", "hang_after") if key in given}
    if "r3 in batch" in given.get("on_call", ""):
        script["refuse"] = {"r3": "prompt_too_long"}
    if "second use" in given.get("on_call", ""):
        script["refuse_same_media"] = True
    return script


def run_case(make_run: Make, name: str, **recipe: Any) -> tuple[int, str, Path]:
    case = json.loads((FOLDER / f"{name}.json").read_text())
    rows = [{"id": r, "video": "ab"[i % 2] + ".mp4", "question": r} for i, r in enumerate(case["requests"])]
    path = make_run(rows, script=script_of(case), **recipe)
    result = vidpipe("run", path, "-o", path.parent / "run")
    return result.returncode, result.stderr, path


def rows_of(recipe: Path) -> dict[str, dict[str, Any]]:
    rows = pq.read_table(recipe.parent / "run" / "results.parquet").to_pylist()
    assert [row["id"] for row in rows] == [f"r{i}" for i in range(8)], "each row once, in manifest order"
    return {row["id"]: row for row in rows}


def test_one_too_long(make_run: Make) -> None:
    code, _, recipe = run_case(make_run, "g_one_too_long")
    rows = rows_of(recipe)
    assert code == 1 and rows["r3"]["status"] == "row_error" and rows["r3"]["error_kind"] == "prompt_too_long"
    assert [name for name, row in rows.items() if row["status"] != "ok"] == ["r3"]


@pytest.mark.parametrize("name", ["g_doubled", "g_shuffled"])
def test_outputs_are_matched_by_id(make_run: Make, name: str) -> None:
    code, _, recipe = run_case(make_run, name)
    assert code == 0 and {n: row["text"] for n, row in rows_of(recipe).items()} == {
        f"r{i}": f"text r{i}" for i in range(8)
    }


def test_three_ways_to_say_nothing(make_run: Make) -> None:
    _, _, recipe = run_case(make_run, "g_empty")
    rows = rows_of(recipe)
    assert (rows["r2"]["status"], rows["r2"]["error_kind"]) == ("row_error", "no_completion")
    assert (rows["r4"]["status"], rows["r4"]["text"]) == ("ok", "")
    assert rows["r6"]["status"] == "length"


def test_a_dead_engine_is_started_again(make_run: Make) -> None:
    code, _, recipe = run_case(make_run, "g_dead")
    assert code == 0 and {row["status"] for row in rows_of(recipe).values()} == {"ok"}
    assert json.loads(next((recipe.parent / "run").glob("feed.*.json")).read_text())["engine_starts"] == 3


def test_a_dead_engine_that_may_not_be_started_again(make_run: Make) -> None:
    code, stderr, recipe = run_case(make_run, "g_dead", retry={"engine_restarts": 0})
    assert code == 3 and "own output is in" in stderr
    assert read_status(recipe.parent / "run").statuses == {"ok": 3}, "finished rows are kept, nobody is blamed"


@pytest.mark.parametrize("deaf", [False, True])
def test_a_hung_engine_is_ended_and_the_rest_goes_on(make_run: Make, deaf: bool) -> None:
    code, stderr, recipe = run_case(make_run, "g_hang", retry={"engine_timeout_s": 1.0})
    if deaf:
        values = json.loads(recipe.read_text())
        values["engine"]["args"]["deaf"] = True
        recipe.write_text(json.dumps(values))
        result = vidpipe("run", recipe, "-o", recipe.parent / "run", "--fresh", timeout_s=60)
        code, stderr = result.returncode, result.stderr
    assert code == 3 and "no progress for 1 s" in stderr
    (log,) = (recipe.parent / "run").glob("engine.*.log")
    assert "in _hang" in log.read_text(), "the stacks say where it hung"
    status = read_status(recipe.parent / "run")
    assert status.statuses == {"ok": 5} and status.workers == ()
    values = json.loads(recipe.read_text())
    again = vidpipe("run", recipe, "-o", recipe.parent / "run", timeout_s=60)
    assert again.returncode == 0, again.stderr
    assert {row["status"] for row in rows_of(recipe).values()} == {"ok"}, "its five finished rows were not asked again"


def test_a_media_cache_that_breaks_costs_named_rows(make_run: Make) -> None:
    code, _, recipe = run_case(make_run, "g_cache_assert")
    rows = rows_of(recipe)
    assert code == 1
    assert {row["status"] for row in rows.values()} == {"ok", "row_error"}
    assert all("AssertionError" in row["error"] for row in rows.values() if row["status"] == "row_error")
