"""One attempt at one shard: takes over what earlier attempts finished, adds the rest, publishes the whole.

Before a row is given to the engine the attempt notes that it was started. A row that was
started by attempts whose process vanished, and never finished, may be what kills them:
the next attempt runs such suspects one at a time, and after some deaths the row gets an
error record instead of a further try.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from vidpipe.manifest.row import ColumnKind
from vidpipe.record import entries
from vidpipe.record.disk import set_mark
from vidpipe.record.failures import FailureCount
from vidpipe.record.journal import Journal, read_journal
from vidpipe.record.lease import Lease, was_given_back
from vidpipe.record.parts import parquet_writer
from vidpipe.record.row import OutputRow, standing
from vidpipe.record.schema import output_schema, to_json, to_table

RUN_KEY, RESOLVED_KEY = "vidpipe.run", "vidpipe.resolved"
BATCH_ROWS = 1024


class ShardWriter:
    """Rows of one shard, under one lease.

    Args:
        lease: This process's lease.
        ids: The shard's rows.
        columns: The manifest's columns.
        run: Stored in the part's metadata.
        sync_s: See `Journal`.
    """

    def __init__(
        self,
        lease: Lease,
        ids: Sequence[str],
        columns: Mapping[str, ColumnKind],
        run: Mapping[str, Any],
        sync_s: float,
    ) -> None:
        self.lease = lease
        self._run_dir, self._columns, self._run = lease.run_dir, columns, run
        self._ids, self._missing = ids, set(ids)
        self._settings: dict[str, Any] = {}
        self.statuses: Counter[str] = Counter()
        """Recorded rows a status, those of earlier attempts too."""
        self.deaths: Counter[str] = Counter()
        """For each unfinished row, the attempts that vanished while it was started."""
        self.tries: dict[str, list[OutputRow]] = {}
        """For each unfinished row, what came of it so far where it is asked again."""
        self._journal = Journal(self._run_dir.journal_file(lease.shard, lease.attempt), sync_s)
        for attempt in range(1, lease.attempt):
            self._take_over(attempt)
        for counts in (self.deaths, self.tries):
            for row_id in counts.keys() - self._missing:
                del counts[row_id]

    @property
    def missing_in_order(self) -> list[str]:
        """Ids of the rows that are not recorded yet, in the plan's order."""
        return [row_id for row_id in self._ids if row_id in self._missing]

    @property
    def whole(self) -> bool:
        """Whether every row is recorded."""
        return not self._missing

    def note_started(self, row_id: str) -> None:
        """Remember that a row is about to be given to the engine."""
        self._journal.append(entries.started(row_id))

    def append(self, row: OutputRow, resolved: Mapping[str, Any]) -> OutputRow:
        """Record a finished row and the settings that made it; a second record of a row is left out.

        Returns:
            The row as it is recorded: of several tries, the one that counts.
        """
        if row.id in self._missing:
            self._missing.discard(row.id)
            self._note_settings(row, resolved)
            if tries := self.tries.pop(row.id, None):
                row = replace(standing([*tries, row]), manifest=row.manifest)
            self.statuses[row.status] += 1
            self._journal.append(entries.row(to_json(row, self._columns)))
        return row

    def append_try(self, row: OutputRow, resolved: Mapping[str, Any]) -> None:
        """Record what came of a row that is asked again."""
        self._note_settings(row, resolved)
        self._journal.append(entries.tried(to_json(row, {})))
        self.tries.setdefault(row.id, []).append(row)

    def _note_settings(self, row: OutputRow, resolved: Mapping[str, Any]) -> None:
        if row.resolved is not None and row.resolved.sha not in self._settings:
            self._settings[row.resolved.sha] = resolved
            self._journal.append(entries.settings(row.resolved.sha, resolved))

    def tick(self) -> None:
        """To be called often: brings rows to the disk within `sync_s`."""
        self._journal.tick()

    def publish(self) -> bool:
        """Make the whole shard count; False when another attempt was first."""
        assert not self._missing, "a shard is published whole"
        self._journal.close(keep=False)  # the part that is made of it is synced, and the mark after that
        shard, attempt = self.lease.shard, self.lease.attempt
        part = self._run_dir.part_file(shard, attempt)
        failures = FailureCount()
        try:
            statuses = self._write(part, failures)
        except FileNotFoundError:
            if self._run_dir.done_file(shard).exists():
                return False  # another attempt was first, and has removed the journals
            raise
        mark = {"part": part.name, "rows": statuses.total(), "statuses": statuses, "attempt": attempt}
        if failures.most_first:
            mark["failures"] = failures.as_mark()
        won = set_mark(self._run_dir.done_file(shard), mark)
        if not won:
            part.unlink()
        for old in range(1, attempt + 1):
            self._run_dir.journal_file(shard, old).unlink(missing_ok=True)
        return won

    def _write(self, part: Path, failures: FailureCount) -> Counter[str]:
        """Write the journal's rows as Parquet; counts those that failed, and returns the rows of each status."""
        statuses: Counter[str] = Counter()
        rows = entries.rows(read_journal(self._journal.path))
        with parquet_writer(part, output_schema(self._columns), {RUN_KEY: json.dumps(self._run)}) as writer:
            while batch := list(islice(rows, BATCH_ROWS)):
                table = to_table(batch, self._columns)
                statuses.update(table["status"].to_pylist())
                failed = table.filter(pc.is_valid(table["error_kind"]))
                for kind, error in zip(failed["error_kind"].to_pylist(), failed["error"].to_pylist(), strict=True):
                    failures.add(kind, error or "")
                writer.write_table(table)
            writer.add_key_value_metadata({RESOLVED_KEY: json.dumps(self._settings)})
        return statuses

    def give_back(self, *, died: bool) -> None:
        """End the attempt; what it recorded is kept for the next one. `died`: see `Lease.give_back`."""
        self._journal.close()
        self.lease.give_back(died=died)

    def _take_over(self, attempt: int) -> None:
        path = self._run_dir.journal_file(self.lease.shard, attempt)
        if not path.exists():
            return
        started: set[str] = set()
        for payload in read_journal(path):
            entry = entries.read(payload)
            if entry.started is not None:
                started.add(entry.started)
            elif entry.tried is not None:
                started.discard(entry.tried.id)
                known = self.tries.setdefault(entry.tried.id, [])
                if all(row.attempt != entry.tried.attempt for row in known):  # else a later journal's copy
                    known.append(entry.tried)
                    self._journal.append(payload)
            elif entry.settings is not None:
                self._settings |= entry.settings
                self._journal.append(payload)
            elif entry.row is not None and entry.row["id"] in self._missing:
                self._missing.discard(entry.row["id"])
                self.statuses[entry.row["status"]] += 1
                self._journal.append(payload)
        if not was_given_back(self._run_dir, self.lease.shard, attempt):
            self.deaths.update(started & self._missing)
