"""The run directory: the one place that knows its file names.

```
recipe.yaml            the recipe as given
run.json               recipe as resolved, versions, git revision, environment, manifest columns
engine.log             what the engine printed
segments/000001.rows       finished rows of the process at work (journal)
segments/000001.parquet    the same rows once there are enough of them, or at the end
results.parquet        all rows in manifest order, when the run is complete or merged
lock                   held by the process at work
```
A segment is a journal until its Parquet file exists and a Parquet file from then on, so
a kill between the two never counts a row twice.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from vidpipe.errors import RecipeError
from vidpipe.record.disk import sync


class RunDir:
    """Paths and small files of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run_file = path / "run.json"
        self.recipe_file = path / "recipe.yaml"
        self.engine_log = path / "engine.log"
        self.results = path / "results.parquet"
        self.segments = path / "segments"
        self._lock_file = path / "lock"
        self._lock: TextIO | None = None

    def open(self, *, fresh: bool) -> None:
        """Create the directory if need be and take it for this process.

        Raises:
            RecipeError: it holds something else, or another process works on it.
        """
        strangers = self.path.is_dir() and not self.run_file.exists() and not self._lock_file.exists()
        if strangers and any(self.path.iterdir()):
            raise RecipeError(f"{self.path} is not empty and not a run directory. Choose another with -o.")
        self.segments.mkdir(parents=True, exist_ok=True)
        self._lock = self._lock_file.open("a")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RecipeError(
                f"another vidpipe is at work on {self.path}. Wait for it, or choose another with -o."
            ) from None
        if fresh:
            self._clear()

    def close(self) -> None:
        """Let other processes have the directory."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def read_run(self) -> dict[str, Any] | None:
        """What `write_run` stored, None for a new run."""
        if not self.run_file.exists():
            return None
        values: dict[str, Any] = json.loads(self.run_file.read_text())
        return values

    def write_run(self, values: Mapping[str, Any], recipe_text: str) -> None:
        """Store what is needed to make the run's numbers again."""
        self.recipe_file.write_text(recipe_text, encoding="utf-8")
        temporary = self.run_file.with_suffix(".tmp")
        temporary.write_text(json.dumps(values, indent=1, ensure_ascii=True))
        sync(temporary)
        temporary.replace(self.run_file)
        sync(self.path)

    def journals(self) -> list[Path]:
        """Journals without a Parquet file of their own, oldest first."""
        return [path for path in sorted(self.segments.glob("*.rows")) if not path.with_suffix(".parquet").exists()]

    def parts(self) -> list[Path]:
        """Parquet files of the segments, oldest first."""
        return sorted(self.segments.glob("[0-9]*.parquet"))

    def next_journal(self) -> Path:
        """A journal path that no segment has used."""
        used = [int(path.stem) for path in self.segments.glob("[0-9]*.*")]
        return self.segments / f"{max(used, default=0) + 1:06d}.rows"

    def _clear(self) -> None:
        """Remove the files of the run before, and nothing else that may lie here."""
        for path in (*self.segments.iterdir(), self.results, self.engine_log, self.recipe_file, self.run_file):
            path.unlink(missing_ok=True)


def describe_environment() -> dict[str, str]:
    """Variables that can change a run's numbers; names that may hold secrets are left out."""
    prefixes = ("VLLM_", "CUDA_", "HF_HUB_", "OMP_", "TORCH_", "SLURM_JOB_ID", "SLURM_ARRAY")
    secrets = ("TOKEN", "KEY", "SECRET", "PASSWORD")
    return {
        name: value
        for name, value in sorted(os.environ.items())
        if name.startswith(prefixes) and not any(word in name for word in secrets)
    }
