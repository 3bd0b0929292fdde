"""Runs as real Slurm arrays, through what happens to tasks: every row once, and one merged file."""

from __future__ import annotations

import json
import os
import re
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq

from tests.conftest import ROOT, vidpipe
from tests.slurm.cluster import MAX_ARRAY_SIZE, ThrowAwaySlurm
from vidpipe.cluster.jobs import read_jobs
from vidpipe.record.merge import PARTIAL_KEY
from vidpipe.record.status import RunStatus, Worker, read_status

Make = Callable[..., Path]
ROWS = 48


class Run:
    """A run that is submitted; its folder has a space in its name."""

    def __init__(self, slurm: ThrowAwaySlurm, make_run: Make, **script: object) -> None:
        rows = [
            {"id": f"r{i}", "video": "ab"[i % 2] + ".mp4", "question": "?", "clip_start": i // 2 * 0.05}
            for i in range(ROWS)
        ]
        self.slurm = slurm
        self.recipe = make_run(rows, script=script, record={"lease_s": 5}, feed={"workers": 1})
        self.path = self.recipe.parent / "a run"

    def type(self, *arguments: object) -> list[str]:
        """The numbers of the jobs that a command submits; the last one merges."""
        done = vidpipe("slurm", *arguments)
        assert done.returncode == 0, done.stderr
        assert f"vidpipe status {self.path}" in done.stdout
        return re.findall(r"^(\d+) ", done.stdout, re.MULTILINE)

    def submit(self, *options: object) -> list[str]:
        return self.type("submit", self.recipe, "-o", self.path, *options)

    def status(self) -> RunStatus:
        return read_status(self.path)

    def worker(self, task: str) -> Worker:
        """The process of a task that is at work."""
        found: list[Worker] = []

        def at_work() -> bool:
            found[:] = [worker for worker in self.status().workers if worker.slurm_task == task]
            return bool(found)

        self.slurm.wait_until(at_work, f"task {task} at work")
        return found[0]

    def log(self, name: str) -> str:
        path = self.path / "slurm" / f"{name}.log"
        return path.read_text() if path.exists() else ""

    def wait(self, job: str) -> None:
        """Until no task of a job waits or runs."""
        going = {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING"}
        self.slurm.wait_until(lambda: not going & set(self.slurm.state(job).split()), f"the end of job {job}", 90)

    def assert_every_row_once(self) -> None:
        results = pq.read_table(self.path / "results.parquet")
        assert results["id"].to_pylist() == [f"r{i}" for i in range(ROWS)]
        assert set(results["status"].to_pylist()) == {"ok"}
        assert pq.read_metadata(self.path / "results.parquet").metadata[PARTIAL_KEY.encode()] == b"false"


def test_an_array_answers_every_row(slurm: ThrowAwaySlurm, make_run: Make) -> None:
    run = Run(slurm, make_run, seconds_to_start=6, seconds_per_reply=0.05)
    own = ROOT / "vidpipe" / "cluster" / "array.sbatch.j2"
    template = run.recipe.parent / "own.j2"
    note = 'echo "$SLURMD_NODENAME $CUDA_VISIBLE_DEVICES $TMPDIR" > "slurm/seen.$SLURM_ARRAY_TASK_ID"\nexec'
    template.write_text(
        own.read_text().replace("exec {{", note + " {{").replace("set -eu", "SLURM_TMPDIR=$PWD\nset -eu")
    )
    array, merging = run.submit("--tasks", 4, "--gpus-per-task", 1, "--time", "0:10:00", "--template", template)
    waiting = json.loads(vidpipe("status", run.path, "--json").stdout)
    assert [(job["job"], job["tasks"]) for job in waiting["slurm_jobs"]] == [(array, 4), (merging, 0)]
    assert waiting["slurm_jobs"][1]["states"] == {"PENDING": 1}
    run.worker(f"{array}_3")
    assert f"Slurm task {array}_3, " in vidpipe("status", run.path).stdout
    run.wait(merging)
    assert slurm.state(array).split() == ["COMPLETED"] * 4 and slurm.state(merging) == "COMPLETED", run.log(merging)
    assert "48 of 48 rows" in run.log(merging) and "(complete)" in run.log(merging)
    run.assert_every_row_once()
    seen = [(run.path / "slurm" / f"seen.{task}").read_text().rstrip("\n").split(" ", 2) for task in range(4)]
    assert Counter((node, gpu) for node, gpu, _ in seen) == Counter((f"n{n}", gpu) for n in (1, 2) for gpu in "01")
    assert {scratch for _, _, scratch in seen} == {str(run.path)}
    assert "4 completed" in vidpipe("status", run.path).stdout


def test_term_puts_this_task_back_and_no_other(slurm: ThrowAwaySlurm, make_run: Make) -> None:
    run = Run(slurm, make_run, seconds_per_reply=0.4)
    array, merging = run.submit("--tasks", 2)
    last = f"{array}_1"  # its bare number is the whole array's
    run.worker(last), run.worker(f"{array}_0")
    slurm.ask("scancel", "--batch", "-s", "TERM", last)
    slurm.wait_until(lambda: f"asking Slurm to queue task {last} again" in run.log(last), "the requeue")
    slurm.wait_until(lambda: "Restarts=1" in slurm.ask("scontrol", "show", "job", last), "the second go")
    assert "Restarts=0" in slurm.ask("scontrol", "show", "job", f"{array}_0")
    run.wait(merging)
    assert "exit code 75" in run.log(last)
    assert slurm.state(array).split() == ["COMPLETED"] * 2
    run.assert_every_row_once()


def test_a_cancelled_task_stays_cancelled(slurm: ThrowAwaySlurm, make_run: Make) -> None:
    run = Run(slurm, make_run, seconds_per_reply=0.2)
    array, merging = run.submit("--tasks", 2)
    run.worker(f"{array}_0"), run.worker(f"{array}_1")
    slurm.ask("scancel", f"{array}_1")
    run.wait(merging)
    assert slurm.state(f"{array}_1") == "CANCELLED" and "asking Slurm" not in run.log(f"{array}_1")
    run.assert_every_row_once()


def test_a_killed_task_and_a_second_array_of_another_size(slurm: ThrowAwaySlurm, make_run: Make) -> None:
    run = Run(slurm, make_run, seconds_per_reply=0.3)
    array, _ = run.submit("--tasks", 1)
    worker = run.worker(f"{array}_0")
    slurm.wait_until(lambda: run.status().recorded > 2, "some rows")
    os.kill(worker.pid, signal.SIGKILL)
    run.wait(array)
    assert slurm.state(array) == "FAILED" and 0 < run.status().recorded < ROWS
    second, merging = run.type("resubmit", run.path, "--tasks", 3)
    run.wait(merging)
    run.assert_every_row_once()
    assert [job.tasks for job in read_jobs(run.path)] == [1, 0, 3, 0] and second != array


def test_cancel_and_arrays_above_the_largest(slurm: ThrowAwaySlurm, make_run: Make) -> None:
    run = Run(slurm, make_run, seconds_per_reply=1)
    *arrays, merging = run.submit("--tasks", MAX_ARRAY_SIZE + 2, "--max-parallel", 1)
    assert len(arrays) == 2
    run.worker(f"{arrays[0]}_0")
    assert slurm.state(arrays[1]).split() == ["PENDING"] * 3
    assert "afterany" in slurm.ask("squeue", "-h", "-j", arrays[1], "-o", "%E")
    assert vidpipe("slurm", "cancel", run.path).returncode == 0
    for job in (*arrays, merging):
        run.wait(job)
        assert set(slurm.state(job).split()) == {"CANCELLED"}
    assert "nobody is at work" in vidpipe("status", run.path).stdout
