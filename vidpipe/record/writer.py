"""Finished rows into the run directory: journal at once, Parquet when a segment is full or the run ends."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from vidpipe.manifest.row import ColumnKind
from vidpipe.record.journal import Journal, read_journal
from vidpipe.record.parts import parquet_writer
from vidpipe.record.row import OutputRow
from vidpipe.record.run_dir import RunDir
from vidpipe.record.schema import to_table

SEGMENT_ROWS = 4096
RUN_KEY, RESOLVED_KEY = "vidpipe.run", "vidpipe.resolved"


class RowWriter:
    """Appends rows to a run directory that this process has opened.

    Args:
        run_dir: The directory.
        columns: The manifest's columns; they fix the schema of the parts.
        run: Stored in every part's metadata.
        sync_s: See `Journal`.
    """

    def __init__(
        self, run_dir: RunDir, columns: Mapping[str, ColumnKind], run: Mapping[str, Any], sync_s: float
    ) -> None:
        self._run_dir, self._columns, self._run, self._sync_s = run_dir, columns, run, sync_s
        self._journal: Journal | None = None
        self._rows_in_segment = 0
        self._resolved: dict[str, Any] = {}
        for journal in run_dir.journals():
            self._seal(journal)

    def append(self, row: OutputRow, resolved: Mapping[str, Any]) -> None:
        """Record a finished row and the settings that made it (`row.resolved.sha` is their hash)."""
        if self._journal is None:
            self._journal = Journal(self._run_dir.next_journal(), self._sync_s)
        record = {"row": row.as_dict(), "resolved": dict(resolved)}
        self._journal.append(json.dumps(record, separators=(",", ":"), default=str).encode())
        self._rows_in_segment += 1
        if self._rows_in_segment >= SEGMENT_ROWS:
            self.close()

    def tick(self) -> None:
        """To be called often: brings rows to the disk within `sync_s`."""
        if self._journal is not None:
            self._journal.tick()

    def close(self) -> None:
        """Turn the open segment into a Parquet part. Idempotent; `append` may follow."""
        if self._journal is not None:
            self._journal.close()
            self._seal(self._journal.path)
            self._journal, self._rows_in_segment = None, 0

    def _seal(self, journal: Path) -> None:
        records = [json.loads(payload) for payload in read_journal(journal)]
        if records:
            table = to_table([record["row"] for record in records], self._columns)
            settings = {
                record["row"]["resolved"]["sha"]: record["resolved"] for record in records if record["row"]["resolved"]
            }
            metadata = {RUN_KEY: json.dumps(self._run), RESOLVED_KEY: json.dumps(settings)}
            with parquet_writer(journal.with_suffix(".parquet"), table.schema, metadata) as writer:
                writer.write_table(table)
        journal.unlink()


def recorded_statuses(run_dir: RunDir) -> Iterator[tuple[str, str]]:
    """Id and status of every row that the run directory holds."""
    for part in run_dir.parts():
        table = pq.read_table(part, columns=["id", "status"])
        yield from zip(table["id"].to_pylist(), table["status"].to_pylist(), strict=True)
    for journal in run_dir.journals():
        for payload in read_journal(journal):
            row = json.loads(payload)["row"]
            yield row["id"], row["status"]
