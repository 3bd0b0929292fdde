"""A run that is submitted to the throw-away Slurm, as a test sees it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq

from tests.conftest import vidpipe
from tests.slurm.cluster import ThrowAwaySlurm
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
