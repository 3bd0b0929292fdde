"""What a user asks of Slurm for a run, as values that can be stored and read back."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from vidpipe.errors import RecipeError

_KEY = re.compile(r"[a-z][a-z0-9-]*")


@dataclass(frozen=True)
class Submission:
    """Everything that the scripts are rendered from."""

    recipe: str
    """Absolute path."""
    run_dir: str
    """Absolute path."""
    name: str
    """Of the job, in Slurm's lists."""
    tasks: int
    """Wanted workers."""
    gpus_per_task: int
    """GPUs that one worker asks for; 0: none."""
    assignments: tuple[str, ...] = ()
    """`--set` of the run."""
    time: str | None = None
    """Limit of a task, in Slurm's notation."""
    partition: str | None = None
    signal_grace_s: int = 120
    """Seconds between the signal and the limit."""
    max_parallel: int | None = None
    """Tasks that may run at once."""
    sbatch: tuple[str, ...] = ()
    """Further `KEY=VALUE` or `KEY` options of sbatch."""
    template: str | None = None
    """Absolute path of a template of the user's own."""
    score: bool = False
    """Whether the rows have a scorer."""
    python: str = field(default=sys.executable)
    """Interpreter that has vidpipe, on the nodes too."""

    def __post_init__(self) -> None:
        if self.tasks < 1 or self.gpus_per_task < 0 or self.signal_grace_s < 1:
            raise RecipeError("--tasks and --signal-grace start at 1, --gpus-per-task at 0.")
        if self.max_parallel is not None and self.max_parallel < 1:
            raise RecipeError(
                f"--max-parallel {self.max_parallel}: at least one task must run. Leave it out: no limit."
            )
        for option in self.sbatch:
            if not _KEY.fullmatch(option.partition("=")[0]):
                raise RecipeError(f"--sbatch {option!r} is not KEY=VALUE or KEY. Example: --sbatch account=video")
        for text in (self.recipe, self.run_dir, self.name, self.time or "", self.partition or "", *self.sbatch):
            if any(character in text for character in "\n\r\0"):
                raise RecipeError(f"{text!r} has a line break in it, which a line of sbatch options cannot hold.")

    def stored(self) -> dict[str, Any]:
        """As values for a JSON file."""
        return asdict(self)

    @classmethod
    def restored(cls, values: Mapping[str, Any]) -> Submission:
        """What `stored` gave."""
        known = {entry.name for entry in fields(cls)}
        lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return cls(**{name: value for name, value in {**values, **lists}.items() if name in known})

    @property
    def folder(self) -> Path:
        """Scripts, records and logs of the run's Slurm jobs."""
        return jobs_folder(Path(self.run_dir))


def jobs_folder(run_dir: Path) -> Path:
    """Where a run directory keeps what was submitted for it."""
    return run_dir / "slurm"
