"""Seconds foretold from the first tenth of a run, beside what all of it took."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.job.test_run import Watcher
from vidpipe.job.early import MOST_ROWS, Early, Foreteller, Sight, read_early, seconds_that_came_true
from vidpipe.job.prospect import look_ahead
from vidpipe.job.report_facts import compared
from vidpipe.job.run import run
from vidpipe.recipe.load import load_recipe
from vidpipe.record.run_dir import RunDir
from vidpipe.record.shards import read_shards

Make = Callable[..., Path]


@given(st.integers(20, 100_000), st.integers(1, 50), st.floats(0.001, 9), st.floats(0.001, 9), st.integers(1, 64))
def test_an_even_run_is_foretold_exactly(
    rows: int, rows_a_clip: int, decode_s: float, engine_s: float, in_engine: int
) -> None:
    clips = -(-rows // rows_a_clip)
    planned = {"clips": clips, "decoded_pixels": 1000 * clips, "vision_tokens": 7 * rows}
    foreteller, found = Foreteller(planned, rows), None
    for done in range(rows + 1):
        through = min(clips, -(-(done + in_engine) // rows_a_clip))  # of the rows that are in the engine, too
        busy_s = engine_s * (done + in_engine)
        found = foreteller.see(Sight(through, 1000 * through, decode_s * through, done, 7 * done, busy_s))
        if found is not None:
            break
        assert done <= max(MOST_ROWS, 12 * rows_a_clip) + 1, "it is told early"
    assert found is not None
    assert found.decode_core_s == pytest.approx(decode_s * clips)
    assert found.engine_s == pytest.approx(engine_s * rows), "rows that are not finished do not count"
    assert foreteller.see(Sight(clips, 1000 * clips, 1.0, rows, 7 * rows, 1.0)) is None, "told once"


def test_text_only_runs_go_by_rows_and_unknown_plans_tell_nothing() -> None:
    texts = Foreteller({"clips": 30, "decoded_pixels": 0, "vision_tokens": 0}, 30)
    assert texts.see(Sight(5, 0, 0.0, 1, 0, 2.0)) is None
    assert texts.see(Sight(9, 0, 0.0, 4, 0, 8.0)) == Early(None, 60.0, 5, 3)
    older = Foreteller({}, 30)
    assert older.see(Sight(5, 5, 5.0, 1, 5, 2.0)) is None is older.see(Sight(30, 30, 5.0, 30, 5, 9.0))


def test_the_report_sets_foretold_seconds_against_what_came_true(make_run: Make) -> None:
    rows: list[dict[str, Any]] = [
        {"id": f"r{i}", "video": "ab"[i % 2] + ".mp4", "question": "?", "clip_start": i // 4 * 0.05} for i in range(40)
    ]
    recipe = make_run(rows, script={"seconds_per_reply": 0.08})
    run_dir = RunDir(recipe.parent / "run")
    run(look_ahead(load_recipe(recipe, [])), run_dir.path, Watcher())
    early, true = read_early(run_dir), seconds_that_came_true(run_dir, run_dir.results)
    assert early is not None and true is not None
    assert early.clips >= 2 and early.rows >= 4 and early.engine_s == pytest.approx(true[1], rel=0.5)
    assert early.decode_core_s and true[0] > 0 and true[1] >= 40 * 0.08
    decode, engine = compared(run_dir, run_dir.results, read_shards(run_dir).rows)[-2:]
    assert decode.name == f"core-seconds of decoding (foretold from the first {early.clips} clips)"
    assert (decode.predicted, decode.true) == (f"{early.decode_core_s:.2f}", f"{true[0]:.2f}")
    assert engine.error == f"{early.engine_s / true[1] - 1:+.1%}"
    (feed,) = run_dir.path.glob("feed.*.json")
    feed.write_text(json.dumps(json.loads(feed.read_text()) | {"rows": 39}))
    assert seconds_that_came_true(run_dir, run_dir.results) is None, "a process that was killed did not say"
    assert not any("foretold" in one.name for one in compared(run_dir, run_dir.results, 40))


def test_of_very_few_rows_the_report_says_why_it_compares_no_seconds(make_run: Make) -> None:
    """A run of eight: its first tenth is a row, and 8 times its seconds are nothing but an error of some 100 %."""
    prospect = look_ahead(load_recipe(make_run(), []))
    path = prospect.loaded.folder / "run"
    run(prospect, path, Watcher())
    shown = compared(RunDir(path), RunDir(path).results, 8)
    (told,) = [one for one in shown if one.name.startswith("seconds")]
    assert (told.predicted, told.true, told.error) == ("", "", "") and "are not compared: 1 row" in told.name, told
