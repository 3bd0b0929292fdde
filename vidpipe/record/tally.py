"""Rows that a run has recorded, counted again and again without reading anything twice.

Done marks never change and journals only grow, so that a second look costs what has come since the first.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from vidpipe.record import entries
from vidpipe.record.disk import read_mark
from vidpipe.record.failures import MOST_CHARACTERS, FailureCount
from vidpipe.record.journal import HEADER_BYTES, read_journal
from vidpipe.record.run_dir import RunDir


class _Row(msgspec.Struct):
    """Of a journal's row what is counted; the rest is not even parsed."""

    id: str
    status: str
    error_kind: str | None = None
    error: str | None = None


@dataclass
class _Journal:
    """As far as it was read."""

    end: int = 0
    rows: dict[str, _Row] = field(default_factory=dict)

    def read_on(self, path: Path) -> None:
        payloads = []
        for payload in read_journal(path, self.end):
            self.end += HEADER_BYTES + len(payload)
            payloads.append(payload)
        for line in entries.rows(payloads):
            row = msgspec.json.decode(line, type=_Row)
            row.error = None if row.error is None else row.error[:MOST_CHARACTERS]
            self.rows.setdefault(row.id, row)


class Tally:
    """Counts one run; `look` sees what is new.

    Args:
        run_dir: The run.
    """

    def __init__(self, run_dir: RunDir) -> None:
        self._run_dir = run_dir
        self._begun: Any = None
        self._marks: dict[int, dict[str, Any]] = {}
        self._journals: dict[tuple[int, int], _Journal] = {}
        self._unfinished: dict[int, dict[str, _Row]] = {}

    def look(self) -> None:
        """Read what has come."""
        begun = (self._run_dir.read_run() or {}).get("started")
        if begun != self._begun:  # afresh: numbers of shards and attempts mean other files now
            self._begun, self._marks, self._journals = begun, {}, {}
        done = self._run_dir.done_shards()
        self._unfinished = {
            shard: self._rows_of(shard, attempt)
            for shard, attempt in self._run_dir.latest_attempts().items()
            if shard not in done
        }
        # Marks last: a shard that is finished meanwhile has no journals any more.
        for shard in self._run_dir.done_shards() - self._marks.keys():
            if (mark := read_mark(self._run_dir.done_file(shard))) is not None:
                self._marks[shard] = mark
        self._journals = {key: journal for key, journal in self._journals.items() if key[0] in self._unfinished}

    def _rows_of(self, shard: int, attempts: int) -> dict[str, _Row]:
        rows: dict[str, _Row] = {}
        for attempt in range(1, attempts + 1):
            with suppress(FileNotFoundError):
                journal = self._journals.setdefault((shard, attempt), _Journal())
                journal.read_on(self._run_dir.journal_file(shard, attempt))
                rows = journal.rows | rows
        return rows

    @property
    def statuses(self) -> dict[int, Counter[str]]:
        """Rows a status that each shard has recorded, by whichever process."""
        found = {shard: Counter(row.status for row in rows.values()) for shard, rows in self._unfinished.items()}
        return found | {shard: Counter(mark["statuses"]) for shard, mark in self._marks.items()}

    @property
    def failures(self) -> FailureCount:
        """Their failures; done marks of older versions do not tell."""
        count = FailureCount()
        for mark in self._marks.values():
            count.add_mark(mark.get("failures", {}))
        for shard, rows in self._unfinished.items():
            if shard not in self._marks:
                for row in rows.values():
                    if row.error_kind is not None:
                        count.add(row.error_kind, row.error or "")
        return count
