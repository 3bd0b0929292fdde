"""Runs as real Slurm arrays, through what happens to tasks: every row once, and one merged file."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from functools import partial

import pytest

from tests.conftest import ROOT, vidpipe, write_run
from tests.slurm.cluster import MAX_ARRAY_SIZE, ThrowAwaySlurm
from tests.slurm.submitted import ROWS, Make, Run
from vidpipe.cluster.jobs import read_jobs


@pytest.fixture(scope="module", autouse=True)
def short_of_time(slurm: ThrowAwaySlurm, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, str, str]:
    """A run whose only task meets its time limit, and the numbers of its array and its merging job.

    Slurm sends the signal up to a minute early: with this grace, half a minute after the start.
    It is begun first, so that the other tests pass the time.
    """
    run = Run(slurm, partial(write_run, tmp_path_factory.mktemp("short")), seconds_per_reply=0.8)
    array, merging = run.submit("--tasks", 1, "--time", "1", "--signal-grace", 50)
    return run, array, merging


def test_an_array_answers_every_row(slurm: ThrowAwaySlurm, make_run: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # the submitting host's own
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
    first, last = f"{array}_0", f"{array}_1"  # the last one's bare number is the whole array's
    run.worker(last), run.worker(first)
    slurm.ask("scancel", "--batch", "-s", "TERM", last)
    slurm.wait_until(lambda: f"asking Slurm to queue task {last} again" in run.log(last), "the requeue")
    slurm.wait_until(lambda: slurm.restarts(last) == 1, "the second go")
    assert slurm.restarts(first) == 0
    slurm.ask("scontrol", "requeue", first)  # an operator's: Slurm has queued it already when it sends the signal
    slurm.wait_until(lambda: slurm.restarts(first) == 1, "the operator's")
    run.wait(merging)
    assert "exit code 75" in run.log(last) and "asking Slurm" not in run.log(first)
    assert slurm.restarts(first) == slurm.restarts(last) == 1
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


def test_a_task_over_its_time_limit_goes_on(slurm: ThrowAwaySlurm, short_of_time: tuple[Run, str, str]) -> None:
    run, array, merging = short_of_time
    task = f"{array}_0"
    slurm.wait_until(lambda: f"asking Slurm to queue task {task} again" in run.log(task), "the requeue", 90)
    assert "exit code 75" in run.log(task)
    run.wait(merging)
    assert slurm.restarts(task) >= 1 and slurm.state(task) == "COMPLETED"
    run.assert_every_row_once()
