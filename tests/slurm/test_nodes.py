"""Nodes that are lost and come back, jobs of other shapes, and hosts without Slurm, GPU or engine."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, vidpipe
from tests.slurm.cluster import PROGRAMS, ThrowAwaySlurm, why_not_here
from tests.slurm.submitted import Make, Run


def test_a_lost_node_whose_processes_live_on(slurm: ThrowAwaySlurm, make_run: Make) -> None:
    run = Run(slurm, make_run, seconds_per_reply=0.5)
    array, merging = run.submit("--tasks", 1)
    task = f"{array}_0"
    left_over = run.worker(task)
    node = slurm.node(task)
    slurm.lose(node)
    slurm.wait_until(lambda: len(run.status().workers) == 2, "the second go beside the first")
    assert {worker.slurm_task for worker in run.status().workers} == {task}
    assert slurm.restarts(task) == 1 and slurm.node(task) != node
    os.kill(left_over.pid, signal.SIGTERM)  # as a lost node does that begins to shut down
    slurm.wait_until(lambda: "exit code 75" in run.log(task), "the end of the left-over")
    slurm.find_again(node)
    run.wait(merging)
    assert slurm.restarts(task) == 1, "the left-over has not asked Slurm to end its successor"
    assert slurm.state(task) == "COMPLETED", run.log(task)
    run.assert_every_row_once()


def test_srun_inside_a_plain_job(slurm: ThrowAwaySlurm, make_run: Make) -> None:
    run = Run(slurm, make_run, seconds_to_start=3, seconds_per_reply=0.05)
    folder = run.recipe.parent
    worker = shlex.join([sys.executable, "-m", "vidpipe", "run", str(run.recipe), "-o", str(run.path)])
    (folder / "worker.sh").write_text(
        f'echo "$SLURMD_NODENAME $CUDA_VISIBLE_DEVICES" > seen.$SLURM_PROCID\nexec {worker}\n'
    )
    (folder / "plain.sh").write_text("#!/bin/bash\nsrun --ntasks=3 --gpus-per-task=1 bash worker.sh\n")
    options = ("--ntasks=3", "--gpus-per-task=1", f"--chdir={folder}", f"--output={folder}/plain.log")
    job = slurm.ask("sbatch", "--parsable", *options, str(folder / "plain.sh")).strip()
    slurm.wait_until(lambda: run.path.exists() and len(run.status().workers) == 3, "three workers")
    assert {worker.slurm_task for worker in run.status().workers} == {job}
    run.wait(job)
    assert slurm.state(job) == "COMPLETED", (folder / "plain.log").read_text()
    run.assert_every_row_once()
    seen = {(folder / f"seen.{process}").read_text().rstrip() for process in range(3)}
    assert len(seen) == 3 and seen <= {f"n{n} {gpu}" for n in (1, 2) for gpu in (0, 1)}, "each a GPU of its own"


def test_a_login_node_without_gpu_and_engine(
    slurm: ThrowAwaySlurm, make_run: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("torch", "vllm", "transformers"):
        broken = tmp_path / "login" / name / "__init__.py"
        broken.parent.mkdir(parents=True)
        broken.write_text("raise ImportError('libcuda.so.1: cannot open shared object file')\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'login'}:{ROOT}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    run = Run(slurm, make_run)
    run.recipe.write_text(run.recipe.read_text().replace('{"name": "fake", "args": {}}', '{"name": "vllm"}'))
    assert "#SBATCH --gres=gpu:1" in vidpipe("slurm", "render", run.recipe, "-o", run.path).stdout
    array, merging = run.submit("--tasks", 2, "--sbatch", "hold")
    assert slurm.ask("squeue", "-h", "-r", "-j", array, "-o", "%b %r").split("\n")[:2] == ["gres:gpu:1 JobHeldUser"] * 2
    assert f"{array}, 2 tasks: 2 pending" in vidpipe("status", run.path).stdout
    assert vidpipe("slurm", "cancel", run.path).returncode == 0
    run.wait(array), run.wait(merging)


def test_without_the_packages_the_reason_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = why_not_here(str(tmp_path))
    assert nothing is not None and all(name in nothing for name in PROGRAMS) and "apt-get install" in nothing
    for name in PROGRAMS[1:]:
        (tmp_path / name).touch(mode=0o755)
    assert "needs munged, not installed" in str(why_not_here(str(tmp_path)))
    (tmp_path / PROGRAMS[0]).touch(mode=0o755)
    assert why_not_here(str(tmp_path)) is None
