"""Parquet manifests, read in batches so that memory does not grow with the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from vidpipe.manifest.row import Fault, Record

BATCH_ROWS = 1024


def read_parquet(path: Path) -> Iterator[Record | Fault]:
    """Records of the file at `path`; `line` is the row's number from 1."""
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        yield Fault("syntax", f"not a Parquet file: {error}.")
        return
    with file:
        names = file.schema_arrow.names
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            yield Fault("duplicate_column", f"column {twice[0]!r} stands twice. Rename one.")
            return
        number = 0
        try:
            for batch in file.iter_batches(batch_size=BATCH_ROWS):
                for values in _without_nanoseconds(batch).to_pylist(maps_as_pydicts="strict"):
                    number += 1
                    yield Record(number, values)
        except UnicodeDecodeError as error:
            yield Fault("encoding", f"row {number + 1} or one of the next holds text that is not UTF-8: {error}.")
        except KeyError as error:
            yield Fault("duplicate_key", f"row {number + 1} or one of the next has a map with a key twice: {error}.")
        except (pa.ArrowException, OSError, ValueError) as error:
            yield Fault("syntax", f"row {number + 1} or one of the next cannot be read: {error}.")


def _without_nanoseconds(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch, whose times of more digits than Python's are texts (ISO 8601) and whose durations are numbers."""
    for place, field in enumerate(batch.schema):
        kind = field.type
        if not pa.types.is_temporal(kind) or getattr(kind, "unit", None) != "ns":
            continue
        target = pa.int64() if pa.types.is_duration(kind) else pa.string()
        batch = batch.set_column(place, pa.field(field.name, target), batch.column(place).cast(target))
    return batch
