"""Everything that a run directory holds at this moment, each row once: done parts first, then journals."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from vidpipe.record import entries
from vidpipe.record.disk import await_seen, read_mark
from vidpipe.record.journal import read_journal
from vidpipe.record.run_dir import RunDir
from vidpipe.record.schema import output_schema, to_table
from vidpipe.record.shard_writer import RESOLVED_KEY

BATCH_ROWS = 4096


@dataclass(frozen=True)
class Batch:
    """Some rows of a run, and the settings that made them."""

    table: pa.Table
    settings: dict[str, Any]


def done_marks(run_dir: RunDir) -> dict[int, dict[str, Any]]:
    """The done mark of every finished shard."""
    marks = {int(path.name): read_mark(path) for path in run_dir.done.glob("[0-9]*")}
    return {shard: mark for shard, mark in sorted(marks.items()) if mark is not None}


def batches(run_dir: RunDir, shards: Iterable[int], columns: dict[str, Any]) -> Iterator[Batch]:
    """All rows recorded so far, in no order, in batches of bounded size."""
    schema = output_schema(columns)
    latest = run_dir.latest_attempts()
    for shard in shards:
        mark = read_mark(run_dir.done_file(shard))
        if mark is None:
            yield from _unfinished(run_dir, shard, latest.get(shard, 0), columns)
            mark = read_mark(run_dir.done_file(shard))
            if mark is not None:  # it was finished while its journals were read: they may be gone
                raise ShardFinishedError(shard)
            continue
        with pq.ParquetFile(await_seen(run_dir.parts / mark["part"])) as part:
            settings = json.loads((part.metadata.metadata or {}).get(RESOLVED_KEY.encode(), b"{}"))
            for batch in part.iter_batches(batch_size=BATCH_ROWS):
                table = pa.table(batch)
                if table.schema.names != schema.names:
                    # A part from before the manifest got a new column has none of it: null.
                    table = pa.concat_tables([schema.empty_table(), table], promote_options="default")
                yield Batch(table.select(schema.names).cast(schema), settings)


class ShardFinishedError(Exception):
    """A shard was finished while it was read; read again."""


def _unfinished(run_dir: RunDir, shard: int, attempts: int, columns: dict[str, Any]) -> Iterator[Batch]:
    seen: set[str] = set()
    for attempt in range(1, attempts + 1):
        with suppress(FileNotFoundError):
            lines: dict[str, bytes] = {}
            settings: dict[str, Any] = {}
            for payload in read_journal(run_dir.journal_file(shard, attempt)):
                entry = entries.read(payload)
                settings |= entry.settings or {}
                if entry.row is not None and entry.row["id"] not in seen:
                    seen.add(entry.row["id"])
                    lines[entry.row["id"]] = payload[1:]
            yield Batch(to_table(list(lines.values()), columns), settings)
