"""What the rows of a run cost, as its results say."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from vidpipe.record.run_dir import RunDir

STAGES = ("decode", "prepare", "queue", "engine")


@dataclass(frozen=True)
class Speed:
    """Means over the rows that have the number; None where no row has it."""

    seconds: dict[str, float | None] = field(default_factory=dict)
    """Stage -> mean seconds of a row; rows run side by side, so these do not add up to the run's time."""
    tokens_in: float | None = None
    tokens_out: float | None = None
    vision_asked: float | None = None
    vision_kept: float | None = None
    elapsed_s: float | None = None
    """From the start of the run to its last finished shard, pauses included."""
    rows_per_s: float | None = None


def read_speed(path: Path) -> Speed:
    """The cost of a run directory or a results file; nothing for files of other tools."""
    results = RunDir(path).results if path.is_dir() else path
    if results.suffix != ".parquet" or not results.exists():
        return Speed()
    names = set(pq.read_schema(results).names)
    wanted = [name for name in ("seconds", "tokens_in", "tokens_out", "vision_tokens") if name in names]
    table = pq.read_table(results, columns=wanted).flatten()

    def mean(column: str) -> float | None:
        return pc.mean(table[column]).as_py() if column in table.column_names else None

    elapsed_s = _elapsed_s(path) if path.is_dir() else None
    return Speed(
        {stage: mean(f"seconds.{stage}") for stage in STAGES},
        mean("tokens_in"),
        mean("tokens_out"),
        mean("vision_tokens.asked"),
        mean("vision_tokens.kept"),
        elapsed_s,
        table.num_rows / elapsed_s if elapsed_s else None,
    )


def _elapsed_s(folder: Path) -> float | None:
    run_dir = RunDir(folder)
    run = run_dir.read_run()
    done = [run_dir.done_file(shard).stat().st_mtime for shard in run_dir.done_shards()]
    return max(done) - datetime.fromisoformat(run["started"]).timestamp() if run and done else None
