"""How many rows may fail, and when a run gives up."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import vidpipe
from tests.job.test_run import Watcher
from vidpipe.cli.advice import ADVICE
from vidpipe.errors import MediaKind, RowKind
from vidpipe.job import feed
from vidpipe.job.prospect import look_ahead
from vidpipe.job.run import run
from vidpipe.job.tolerance import FailureLimit, tolerated
from vidpipe.recipe.load import load_recipe
from vidpipe.recipe.schema import Output, ToleranceByCause
from vidpipe.record.row import OutputRow, Status

COUNTS = {"ok": 90, "length": 3, "media_error": 4, "row_error": 2, "engine_error": 1}


def test_counts_and_shares() -> None:
    assert tolerated(COUNTS, 7) and not tolerated(COUNTS, 6)
    assert tolerated(COUNTS, 0.07) and not tolerated(COUNTS, 0.069)


def test_media_and_engine_apart() -> None:
    assert tolerated(COUNTS, ToleranceByCause(media=0.06, engine=1))
    assert not tolerated(COUNTS, ToleranceByCause(media=6, engine=0))
    assert not tolerated(COUNTS, ToleranceByCause(media=5, engine=1))


@given(st.integers(0, 100), st.integers(0, 100))
def test_no_failure_is_always_within(ok: int, length: int) -> None:
    assert tolerated({"ok": ok, "length": length}, 0) and tolerated({"ok": ok}, 0.0)


by_cause = st.builds(ToleranceByCause, media=st.floats(0, 0.9), engine=st.integers(0, 3))
outputs = st.builds(Output, tolerance=st.integers(0, 9) | st.floats(0, 0.99) | by_cause)


@given(outputs, st.lists(st.sampled_from(get_args(Status)), max_size=30))
def test_a_run_gives_up_no_earlier_and_no_later_than_its_end_is_certain(output: Output, statuses: list[str]) -> None:
    limit = FailureLimit(output, len(statuses))
    shards: list[Counter[str]] = [Counter(), Counter()]
    for number, status in enumerate(statuses, start=1):
        shards[number % 2][status] += 1
        limit.see(number % 2, shards[number % 2])
        at_best = {s: statuses[:number].count(s) for s in set(statuses)}
        at_best["ok"] = at_best.get("ok", 0) + len(statuses) - number
        assert limit.exceeded == (not tolerated(at_best, output.tolerance))


def test_by_default_every_row_gets_its_turn() -> None:
    for output, exceeded in ((Output(), False), (Output(tolerance=0), True)):
        limit = FailureLimit(output, 3)
        limit.see(0, {"media_error": 1})
        assert limit.exceeded == exceeded


def test_failures_of_other_processes_count(
    make_run: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of two processes fails too few rows to stop; the second one sees what the first has finished."""
    rows = [{"id": f"r{i}", "video": f"none{i}.mp4" if i % 8 else "a.mp4", "question": "?"} for i in range(64)]
    recipe = make_run(rows, output={"tolerance": 50}, script={"seconds_per_reply": 0.05})
    monkeypatch.setattr(feed, "COUNT_EVERY_S", 0.0)
    path = tmp_path / "run"

    class Sibling(Watcher):
        """Sees to it that another process does its half as soon as this one has begun."""

        def row(self, row: OutputRow) -> None:
            super().row(row)
            if len(self.rows) == 1:
                other = vidpipe("run", recipe, "-o", path, "--shard", "1/2")
                assert other.returncode == 0 and "media_error" in other.stdout, other.stdout + other.stderr

    result = run(look_ahead(load_recipe(recipe, [])), path, Sibling(), share=(0, 2))
    assert result.stopped and result.summary.statuses["media_error"] > 50
    assert result.summary.rows < 64


def test_every_kind_of_a_row_says_what_to_do() -> None:
    assert set(ADVICE) == {*get_args(MediaKind), *get_args(RowKind), "poison_row"}


@pytest.mark.parametrize("tolerance", [5, {"media": 5, "engine": 100}])
def test_a_run_stops_early_and_can_go_on(make_run: Callable[..., Path], tmp_path: Path, tolerance: object) -> None:
    rows = [{"id": f"r{i}", "video": "a.mp4" if i % 2 else f"none{i}.mp4", "question": "?"} for i in range(200)]
    recipe = make_run(rows, output={"tolerance": tolerance})
    stopped = vidpipe("run", recipe, "-o", tmp_path / "run")
    assert stopped.returncode == 1, stopped.stderr
    assert "stopped early" in stopped.stdout and "--set output.tolerance=200" in stopped.stdout
    assert "x not_found, for example: " in stopped.stdout and "what to do: check media_root" in stopped.stdout
    found = pq.read_table(tmp_path / "run" / "results.parquet")
    assert 6 <= found["status"].to_pylist().count("media_error") < 100
    again = vidpipe("run", recipe, "-o", tmp_path / "run", "--set", "output.tolerance=200")
    assert again.returncode == 0, again.stderr
    assert pq.read_table(tmp_path / "run" / "results.parquet").num_rows == 200


def test_rows_that_cannot_run_stop_it_before_the_engine_starts(make_run: Callable[..., Path], tmp_path: Path) -> None:
    rows = [{"id": f"r{i}", "question": "?", "video": None if i else "a.mp4"} for i in range(4)]
    recipe = make_run(rows, script={"fail_start": True}, output={"tolerance": 0.5})
    assert vidpipe("run", recipe, "-o", tmp_path / "run").returncode == 1
    assert json.loads((tmp_path / "run" / "run.json").read_text())["engine"] == "fake 1"
