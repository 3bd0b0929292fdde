"""All rows of run directories in one Parquet file, in manifest order, each once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from vidpipe.errors import RecipeError
from vidpipe.record.journal import read_journal
from vidpipe.record.parts import parquet_writer
from vidpipe.record.run_dir import RunDir
from vidpipe.record.schema import INDEX_COLUMN, output_schema, to_table
from vidpipe.record.writer import RESOLVED_KEY, RUN_KEY


@dataclass(frozen=True)
class Merged:
    """What a merge found."""

    rows: int
    expected: int
    """Rows of the manifests."""
    path: Path

    @property
    def partial(self) -> bool:
        """Whether rows are still missing."""
        return self.rows < self.expected


def merge(run_dirs: Sequence[Path], output: Path) -> Merged:
    """Write the rows of `run_dirs` to `output`; may be called at any time, again and again.

    Raises:
        RecipeError: not a run directory, or two rows of one id, or manifests with other columns.
    """
    tables: list[pa.Table] = []
    runs: list[dict[str, Any]] = []
    settings: dict[str, Any] = {}
    for folder in run_dirs:
        run_dir = RunDir(folder)
        run = run_dir.read_run()
        if run is None:
            raise RecipeError(f"{folder} is not a run directory (it has no run.json). Type the -o of a vidpipe run.")
        runs.append(run)
        tables.append(_rows_of(run_dir, run, settings))
    schema = tables[0].schema
    for folder, table in zip(run_dirs, tables, strict=True):
        if table.schema.names != schema.names:
            raise RecipeError(f"{folder} has other columns than {run_dirs[0]}; merge runs of one kind of manifest.")
    merged = pa.concat_tables(tables)
    _refuse_duplicates(merged)
    expected = sum(run["manifest"]["rows"] for run in runs)
    result = Merged(merged.num_rows, expected, output)
    metadata = {
        RUN_KEY: json.dumps(runs[0] if len(runs) == 1 else runs),
        RESOLVED_KEY: json.dumps(settings),
        "vidpipe.partial": json.dumps(result.partial),
    }
    if len(tables) == 1:
        merged = merged.sort_by(INDEX_COLUMN)
    merged = merged.drop_columns([INDEX_COLUMN])
    output.parent.mkdir(parents=True, exist_ok=True)
    with parquet_writer(output, merged.schema, metadata) as writer:
        writer.write_table(merged)
    return result


def merged_rows(path: Path) -> int | None:
    """Rows of a results file; None if there is none."""
    return pq.read_metadata(path).num_rows if path.exists() else None


def _rows_of(run_dir: RunDir, run: dict[str, Any], settings: dict[str, Any]) -> pa.Table:
    columns = run["manifest"]["columns"]
    schema = output_schema(columns)
    tables = [schema.empty_table()]
    for part in run_dir.parts():
        table = pq.read_table(part)
        settings |= json.loads((table.schema.metadata or {}).get(RESOLVED_KEY.encode(), b"{}"))
        tables.append(table)
    for journal in run_dir.journals():
        records = [json.loads(payload) for payload in read_journal(journal)]
        settings |= {r["row"]["resolved"]["sha"]: r["resolved"] for r in records if r["row"]["resolved"]}
        tables.append(to_table([record["row"] for record in records], columns))
    # A part from before the manifest got a new column has none of it: null.
    return pa.concat_tables(tables, promote_options="default").select(schema.names)


def _refuse_duplicates(table: pa.Table) -> None:
    counted = table.group_by("id").aggregate([("id", "count")])
    twice = counted.filter(pc.field("id_count") > 1)["id"].to_pylist()
    if twice:
        names = ", ".join(map(repr, twice[:5]))
        raise RecipeError(f"{len(twice)} ids stand twice in these runs: {names}. Merge runs of different rows.")
