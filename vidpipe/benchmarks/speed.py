"""What the rows of a run cost, as its results say."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from vidpipe.record.run_dir import FEED_FILES, RunDir

STAGES = ("decode", "prepare", "queue", "engine")


@dataclass(frozen=True)
class Speed:
    """Means over the rows that have the number; None where no row has it."""

    seconds: dict[str, float | None] = field(default_factory=dict)
    """Stage -> mean seconds of a row; rows run side by side, so these do not add up to the run's time."""
    tokens_in: float | None = None
    tokens_out: float | None = None
    vision_asked: float | None = None
    """Of rows that were answered, as is what was kept: one that was refused has asked, too."""
    vision_kept: float | None = None
    elapsed_s: float | None = None
    """Seconds of all processes together, each from its engine's first start to its end."""
    rows_per_s: float | None = None
    """Rows a second of a process while its engine was up."""


def read_speed(path: Path) -> Speed:
    """The cost of a run directory or a results file; nothing for files of other tools."""
    results = RunDir(path).results if path.is_dir() else path
    if results.suffix != ".parquet" or not results.exists():
        return Speed()
    names = set(pq.read_schema(results).names)
    wanted = [name for name in ("seconds", "tokens_in", "tokens_out", "vision_tokens") if name in names]
    table = pq.read_table(results, columns=wanted).flatten()

    def mean(column: str, of_those_with: str | None = None) -> float | None:
        if column not in table.column_names:
            return None
        rows = table
        if of_those_with in table.column_names:
            rows = table.filter(pc.is_valid(table[of_those_with]))
        found: float | None = pc.mean(rows[column]).as_py()
        return found

    elapsed_s, rows_per_s = _feed(path) if path.is_dir() else (None, None)
    return Speed(
        {stage: mean(f"seconds.{stage}") for stage in STAGES},
        mean("tokens_in"),
        mean("tokens_out"),
        mean("vision_tokens.asked", of_those_with="tokens_in"),  # a row that was refused keeps nothing
        mean("vision_tokens.kept"),
        elapsed_s,
        rows_per_s,
    )


def _feed(folder: Path) -> tuple[float | None, float | None]:
    """Seconds of the run's processes together, and rows a second of each once its engine was up."""
    reports = [json.loads(path.read_text()) for path in sorted(folder.glob(FEED_FILES))]
    elapsed_s = sum(report["wall_s"] for report in reports)
    busy_s = elapsed_s - sum(report["idle_s"].get("start", 0.0) for report in reports)
    rows = sum(report["rows"] for report in reports)
    return elapsed_s or None, rows / busy_s if busy_s > 0 else None
