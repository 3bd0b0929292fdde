"""Published benchmark files: Parquet, JSONL or JSON, and their SHA-256, so that a number names its data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vidpipe.errors import ManifestError


@dataclass(frozen=True)
class Source:
    """A published file."""

    path: Path
    sha256: str
    records: tuple[Mapping[str, Any], ...]


def read_source(path: Path) -> Source:
    """All records of the file, in its order.

    Raises:
        ManifestError: it cannot be read, or its kind is not known.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ManifestError(
            "not_found", f"--src {path}: {error.strerror}. Give the benchmark's published file."
        ) from None
    records = _records(path, data)
    wrong = next((n for n, record in enumerate(records, 1) if not isinstance(record, dict)), None)
    if wrong is not None:
        raise ManifestError("syntax", f"{path}: record {wrong} is no object with published columns.", line=wrong)
    return Source(path, hashlib.sha256(data).hexdigest(), tuple(records))


def _records(path: Path, data: bytes) -> list[Any]:
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            records: list[Any] = pq.read_table(pa.BufferReader(data)).to_pylist(maps_as_pydicts="strict")
        except pa.ArrowInvalid as error:
            raise ManifestError("syntax", f"{path}: not a Parquet file: {error}.") from None
        return records
    if suffix not in (".jsonl", ".json"):
        raise ManifestError("syntax", f"{path}: published files are .parquet, .jsonl or .json, found {suffix!r}.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ManifestError("encoding", f"{path}: not UTF-8 at byte {error.start}.") from None
    if suffix == ".json":
        found = _json(path, text, None)
        return found if isinstance(found, list) else [found]
    lines = enumerate(text.split("\n"), 1)
    return [_json(path, line, number) for number, line in lines if line.strip()]


def _json(path: Path, text: str, line: int | None) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        where = f"{path}, line {line}" if line else str(path)
        raise ManifestError("syntax", f"{where}: not JSON: {error}.", line=line) from None
