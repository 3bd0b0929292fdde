"""Parquet files of a run: written whole under another name, then renamed, so that none is ever seen half."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from vidpipe.record.disk import sync, temporary_for

COMPRESSION = "zstd"


@contextmanager
def parquet_writer(path: Path, schema: pa.Schema, metadata: Mapping[str, str]) -> Iterator[pq.ParquetWriter]:
    """A writer whose file appears at `path` only when the block ends well.

    Args:
        path: Where the file goes; replaced if it exists.
        schema: The file's schema.
        metadata: Further key-value metadata of the file.
    """
    temporary = temporary_for(path)
    try:
        with pq.ParquetWriter(temporary, schema.with_metadata(dict(metadata)), compression=COMPRESSION) as writer:
            yield writer
        sync(temporary)
        temporary.replace(path)
        sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)
