"""A run is killed without warning, in the middle, and typed again: every row is there once."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.conftest import vidpipe
from vidpipe.record.run_dir import RunDir
from vidpipe.record.writer import recorded_statuses

Make = Callable[..., Path]
ROWS = 60


def start_and_signal(recipe: Path, number: int, after_rows: int) -> int:
    """Start a run, send it a signal once it has recorded some rows, and give its exit code."""
    process = subprocess.Popen([sys.executable, "-m", "vidpipe", "run", str(recipe)], cwd=recipe.parent)
    run_dir = RunDir(recipe.parent / "runs" / "recipe")
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if run_dir.segments.exists() and sum(1 for _ in recorded_statuses(run_dir)) >= after_rows:
            break
        time.sleep(0.02)
    process.send_signal(number)
    return process.wait(timeout=60)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_killed_and_typed_again(make_run: Make, number: int) -> None:
    rows = [{"id": f"r{i}", "video": "ab"[i % 2] + ".mp4", "question": "?"} for i in range(ROWS)]
    recipe = make_run(rows, script={"seconds_per_reply": 0.03})
    code = start_and_signal(recipe, number, after_rows=5)
    assert code == (-signal.SIGKILL if number == signal.SIGKILL else 75)
    recorded = [row_id for row_id, _ in recorded_statuses(RunDir(recipe.parent / "runs" / "recipe"))]
    assert 5 <= len(recorded) < ROWS and len(set(recorded)) == len(recorded)
    assert vidpipe("run", recipe, cwd=recipe.parent).returncode == 0
    ids = pq.read_table(recipe.parent / "runs" / "recipe" / "results.parquet")["id"].to_pylist()
    assert ids == [f"r{i}" for i in range(ROWS)]
