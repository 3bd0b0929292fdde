"""The run directory: the one place that knows its file names.

```
run.json                    recipe as resolved, versions, git revision, environment, manifest columns (mark)
recipe.yaml                 the recipe as given
order.arrow                 ids of all rows in manifest order
plan/000000                 names a plan file; the first writer wins (mark)
plan/<uuid>.parquet         shards: which rows, nothing about workers
claims/000003.0002          lease of attempt 2 on shard 3; its time is the last heartbeat, 0 when given back (mark)
parts/000003.0002.rows      finished rows of that attempt (journal)
parts/000003.0002.parquet   the whole shard
done/000003                 names the part that counts; the first writer wins (mark)
engine.<host>.<pid>.log     what an engine printed
feed.<host>.<pid>.json      how busy a process kept its engine
progress.<host>.<pid>.json  what a process at work last said of itself; removed when it ends in order
early.json                  how long decoding and engine will take, by the first clips (mark)
encoder_graphs.json         graphs of the vision encoder, for all processes; the first writer wins (mark)
encoder.<host>.<pid>.json   what the vision encoder did in a process's engines
slurm/                      Slurm jobs of the run: what was asked for, scripts, logs (`vidpipe.cluster`)
results.parquet             all rows in manifest order
report.html                 the page of `vidpipe report`
```
A reader believes the parts that done marks name, and of other shards the whole records
in journals. Everything else may be half-written, doubled or stale without harm.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vidpipe.errors import RecipeError
from vidpipe.record.disk import read_mark, replace_json, set_mark, wait_until_whole
from vidpipe.redact import is_secret_name, redact

FEED_FILES = "feed.*.json"
"""Reports of all processes on a run."""
PROGRESS_FILES = "progress.*.json"
"""What the processes at work say of themselves."""


class RunDir:
    """Paths and small files of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run_file = path / "run.json"
        self.recipe_file = path / "recipe.yaml"
        self.order_file = path / "order.arrow"
        self.results = path / "results.parquet"
        self.report_file = path / "report.html"
        self.plans = path / "plan"
        self.claims = path / "claims"
        self.parts = path / "parts"
        self.done = path / "done"
        process = f"{os.uname().nodename}.{os.getpid()}"
        self.engine_log = path / f"engine.{process}.log"
        self.feed_file = path / f"feed.{process}.json"
        self.progress_file = path / f"progress.{process}.json"
        self.early_file = path / "early.json"
        self.graphs_file = path / "encoder_graphs.json"
        self.encoder_file = path / f"encoder.{process}.json"

    def create(self) -> None:
        """Make the directory, if it is not there.

        Raises:
            RecipeError: something else is there.
        """
        if self.path.is_dir() and not self.run_file.exists() and not self.claims.exists() and any(self.path.iterdir()):
            raise RecipeError(f"{self.path} is not empty and not a run directory. Choose another with -o.")
        if self.path.exists() and not self.path.is_dir():
            raise RecipeError(f"{self.path} is a file, not a run directory. Choose a folder with -o.")
        for folder in (self.claims, self.plans, self.parts, self.done):
            folder.mkdir(parents=True, exist_ok=True)

    def clear(self) -> None:
        """Remove the files of an earlier run, and nothing else that may lie here."""
        folders = (self.done, self.claims, self.parts, self.plans)
        files = [file for folder in folders if folder.is_dir() for file in folder.iterdir()]
        files += [*self.path.glob("engine.*.log"), *self.path.glob(FEED_FILES)]
        files += [*self.path.glob("encoder.*.json"), self.graphs_file, self.early_file]
        files += self.path.glob(PROGRESS_FILES)
        for file in (*files, self.order_file, self.results, self.report_file, self.recipe_file):
            file.unlink(missing_ok=True)
        self.run_file.unlink(missing_ok=True)  # last: until then this is a run directory

    @property
    def begun(self) -> bool:
        """Whether a run has been begun here."""
        return self.run_file.exists()

    def read_run(self) -> dict[str, Any] | None:
        """What `write_run` stored, None for a new run."""
        return read_mark(self.run_file)

    def write_run(self, values: Mapping[str, Any], recipe_text: str) -> dict[str, Any]:
        """Store what is needed to make the run's numbers again; return what the first process stored.

        Args:
            values: Without secrets.
            recipe_text: The recipe as given.
        """
        if set_mark(self.run_file, values):
            self.recipe_file.write_text(redact(recipe_text), encoding="utf-8")
        return wait_until_whole(self.run_file)

    def update_run(self, values: Mapping[str, Any]) -> None:
        """Replace what `write_run` stored; for a manifest that has grown."""
        replace_json(self.run_file, values)

    def claim_file(self, shard: int, attempt: int) -> Path:
        """Lease of one attempt on one shard."""
        return self.claims / f"{shard:06d}.{attempt:04d}"

    def journal_file(self, shard: int, attempt: int) -> Path:
        """Finished rows of one attempt."""
        return self.parts / f"{shard:06d}.{attempt:04d}.rows"

    def part_file(self, shard: int, attempt: int) -> Path:
        """The whole shard as one attempt made it."""
        return self.parts / f"{shard:06d}.{attempt:04d}.parquet"

    def done_file(self, shard: int) -> Path:
        """Names the part that counts."""
        return self.done / f"{shard:06d}"

    def latest_attempts(self) -> dict[int, int]:
        """The highest attempt number at each shard that anyone has claimed."""
        latest: dict[int, int] = {}
        for name in _numbered(self.claims):
            shard, _, attempt = name.partition(".")
            latest[int(shard)] = max(int(attempt), latest.get(int(shard), 0))
        return latest

    def done_shards(self) -> set[int]:
        """Shards with a done mark."""
        return {int(name) for name in _numbered(self.done)}


def _numbered(folder: Path) -> list[str]:
    """Names of marks in `folder`, without temporary files; this is asked often, and a glob is five times slower."""
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries if entry.name[0].isdigit()]


def describe_environment() -> dict[str, str]:
    """Variables that can change a run's numbers; names that may hold secrets are left out."""
    prefixes = ("VLLM_", "CUDA_", "HF_HUB_", "OMP_", "TORCH_", "SLURM_JOB_ID", "SLURM_ARRAY")
    return {
        name: value
        for name, value in sorted(os.environ.items())
        if name.startswith(prefixes) and not is_secret_name(name)
    }
