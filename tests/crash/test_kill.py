"""Runs are killed, stopped and signalled in the middle; whatever happens, every row is there once.

`VIDPIPE_CRASH_RUNS` sets the number of seeded runs; each prints its seed.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.conftest import ROOT, vidpipe
from vidpipe.record.status import read_status

Make = Callable[..., Path]
ROWS = 60
RUNS = int(os.environ.get("VIDPIPE_CRASH_RUNS", "30"))
LEASE_S = 1.0


def start(recipe: Path, clock_ahead_s: float = 0.0) -> subprocess.Popen[bytes]:
    """A run in a process of its own, on a host whose clock is wrong by so much."""
    folder = recipe.parent / "clock"
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(
        "import os, time\nright = time.time\ntime.time = lambda: right() + float(os.environ['CLOCK_AHEAD_S'])\n"
    )
    paths = os.pathsep.join([str(folder), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths, "CLOCK_AHEAD_S": str(clock_ahead_s)}
    command = [sys.executable, "-m", "vidpipe", "run", str(recipe)]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, cwd=recipe.parent, stdout=quiet, stderr=quiet, env=environment)


def recorded(recipe: Path) -> int:
    try:
        return read_status(recipe.parent / "runs" / "recipe").recorded
    except Exception:  # it is being made just now
        return 0


def assert_every_row_once(recipe: Path, rows: int) -> None:
    results = pq.read_table(recipe.parent / "runs" / "recipe" / "results.parquet")
    assert results["id"].to_pylist() == [f"r{i}" for i in range(rows)]
    assert results["text"].to_pylist() == [f"text {i} \N{SNOWMAN}" for i in range(rows)]
    assert set(results["status"].to_pylist()) == {"ok"}


def windows(rows: int) -> list[dict[str, object]]:
    """Rows on many clips: parts of two files, two rows a part."""
    return [
        {"id": f"r{i}", "video": "ab"[i % 2] + ".mp4", "question": "?", "clip_start": (i // 4) * 0.1}
        for i in range(rows)
    ]


def texts(rows: int) -> dict[str, str]:
    return {f"r{i}": f"text {i} \N{SNOWMAN}" for i in range(rows)}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_one_process_is_signalled_and_typed_again(make_run: Make, number: int) -> None:
    recipe = make_run(windows(ROWS), script={"seconds_per_reply": 0.03, "texts": texts(ROWS)})
    process = start(recipe)
    deadline = time.monotonic() + 60
    while recorded(recipe) < 5 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    code = process.wait(timeout=60)
    assert code == (-signal.SIGKILL if number == signal.SIGKILL else 75)
    assert 5 <= recorded(recipe) < ROWS or number != signal.SIGKILL
    began = time.monotonic()
    assert vidpipe("run", recipe, cwd=recipe.parent).returncode == 0
    assert time.monotonic() - began < 30, "a dead process of this host is not waited for"
    assert_every_row_once(recipe, ROWS)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_a_signal_before_there_is_work_is_an_interruption_too(make_run: Make, number: int) -> None:
    recipe = make_run()
    (recipe.parent / "rows.jsonl").unlink()
    os.mkfifo(recipe.parent / "rows.jsonl")
    process = start(recipe)
    with (recipe.parent / "rows.jsonl").open("w"):  # waits until it is read
        process.send_signal(number)
        assert process.wait(60) == 75


@pytest.mark.parametrize("seed", range(RUNS))
def test_many_processes_many_accidents(make_run: Make, seed: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    rows = chance.randint(20, 60)
    script = {"seconds_per_reply": chance.choice([0.0, 0.01, 0.03]), "texts": texts(rows)}
    recipe = make_run(windows(rows), script=script, record={"lease_s": LEASE_S}, retry={"attempts": 100})
    clocks_s = [0.0, 0.0, 3600.0, -3600.0]
    processes = [start(recipe, chance.choice(clocks_s)) for _ in range(chance.randint(1, 3))]
    stopped: list[tuple[float, subprocess.Popen[bytes]]] = []
    try:
        for _ in range(chance.randint(1, 4)):
            time.sleep(chance.uniform(0.1, 1.2))
            alive = [process for process in processes if process.poll() is None]
            if not alive:
                break
            victim = chance.choice(alive)
            accident = chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
            victim.send_signal(accident)
            if accident == signal.SIGSTOP:
                stopped.append((time.monotonic() + chance.choice([0.2, 2 * LEASE_S]), victim))
            if chance.random() < 0.5:
                processes.append(start(recipe, chance.choice(clocks_s)))
        for due, process in stopped:
            time.sleep(max(0.0, due - time.monotonic()))
            process.send_signal(signal.SIGCONT)
        finish = vidpipe("run", recipe, cwd=recipe.parent)
        assert finish.returncode == 0, finish.stderr
        assert_every_row_once(recipe, rows)
        for process in processes:
            assert process.wait(timeout=60) in (0, 75, -signal.SIGKILL, -signal.SIGTERM), "none fails, also late ones"
        assert_every_row_once(recipe, rows)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_a_row_that_kills_its_process_is_given_up(make_run: Make) -> None:
    script = {"crash_on": ["r7"], "texts": texts(12)}
    recipe = make_run(windows(12), script=script, retry={"attempts": 2})
    for _ in range(2):
        assert vidpipe("run", recipe, cwd=recipe.parent).returncode == -signal.SIGKILL
    assert vidpipe("run", recipe, cwd=recipe.parent).returncode == 1
    rows = pq.read_table(recipe.parent / "runs" / "recipe" / "results.parquet").to_pylist()
    assert [(r["id"], r["status"]) for r in rows if r["status"] != "ok"] == [("r7", "engine_error")]
    assert len(rows) == 12 and rows[7]["error_kind"] == "poison_row"


def test_a_full_disk_is_a_clear_stop(make_run: Make, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    # No space is injected where a journal is written: mounting a small file system needs rights that tests lack.
    (tmp_path / "full" / "sitecustomize.py").write_text(
        "import errno\nfrom vidpipe.record import journal\n"
        "write = journal.Journal.append\n"
        "def append(self, payload, count=[0]):\n"
        "    count[0] += 1\n"
        "    if count[0] > 20:\n"
        "        self._file.write(b'\\0\\0')\n"
        "        raise OSError(errno.ENOSPC, 'No space left on device')\n"
        "    write(self, payload)\n"
        "journal.Journal.append = append\n"
    )
    recipe = make_run(windows(40), script={"texts": texts(40)})
    command = [sys.executable, "-m", "vidpipe", "run", str(recipe)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "full"), str(ROOT)])}
    full = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert full.returncode == 75 and "disk is full" in full.stderr and "Traceback" not in full.stderr
    assert 0 < recorded(recipe) < 40
    assert vidpipe("run", recipe, cwd=tmp_path).returncode == 0
    assert_every_row_once(recipe, 40)
