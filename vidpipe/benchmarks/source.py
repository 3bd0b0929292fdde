"""Published benchmark files, and their SHA-256, so that a number names its data.

Parquet, JSONL, JSON, CSV, or lines of text; one file, or a folder of them (one a task).
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vidpipe.errors import ManifestError

KINDS = (".parquet", ".jsonl", ".json", ".csv", ".txt")


@dataclass(frozen=True)
class SourceFile:
    """One published file."""

    path: Path
    records: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Source:
    """What a benchmark publishes: a file, or a folder of files in the order of their names."""

    path: Path
    sha256: str
    """Of the file's bytes; of a folder, of its files' names and hashes, a line each."""
    files: tuple[SourceFile, ...]


def read_source(path: Path) -> Source:
    """All records of the file, in its order; of every file in a folder.

    Raises:
        ManifestError: it cannot be read, or its kind is not known.
    """
    if not path.is_dir():
        data = _bytes(path)
        return Source(path, hashlib.sha256(data).hexdigest(), (SourceFile(path, _records(path, data)),))
    found = sorted(file for file in path.iterdir() if file.suffix.lower() in KINDS)
    if not found:
        raise ManifestError("not_found", f"--src {path}: a folder without published files ({', '.join(KINDS)}).")
    files, lines = [], []
    for file in found:
        data = _bytes(file)
        lines.append(f"{hashlib.sha256(data).hexdigest()}  {file.name}\n")
        files.append(SourceFile(file, _records(file, data)))
    return Source(path, hashlib.sha256("".join(lines).encode()).hexdigest(), tuple(files))


def read_json(path: Path) -> Any:
    """The JSON of a file that goes with a published one.

    Raises:
        ManifestError: it cannot be read.
    """
    return _json(path, _text(path, _bytes(path)), None)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ManifestError(
            "not_found", f"--src {path}: {error.strerror}. Give the benchmark's published file."
        ) from None


def _records(path: Path, data: bytes) -> tuple[Mapping[str, Any], ...]:
    records = _parsed(path, data)
    if not records:
        raise ManifestError("syntax", f"{path}: there is no record in it. Give the benchmark's published file.")
    wrong = next((n for n, record in enumerate(records, 1) if not isinstance(record, dict)), None)
    if wrong is not None:
        raise ManifestError("syntax", f"{path}: record {wrong} is no object with published columns.", line=wrong)
    return tuple(records)


def _parsed(path: Path, data: bytes) -> list[Any]:
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        # On this thread alone: a thread of Arrow's that lets go of `data` while Python shuts down aborts the process
        # (apache/arrow#34314; seen with `read_table` after all was written, in 10 of 600 processes).
        try:
            with pq.ParquetFile(pa.BufferReader(data)) as file:
                records: list[Any] = file.read(use_threads=False).to_pylist(maps_as_pydicts="strict")
        except pa.ArrowInvalid as error:
            raise ManifestError("syntax", f"{path}: not a Parquet file: {error}.") from None
        return records
    if suffix not in KINDS:
        raise ManifestError("syntax", f"{path}: published files are {', '.join(KINDS)}, found {suffix!r}.")
    text = _text(path, data)
    if suffix == ".csv":
        return list(csv.DictReader(io.StringIO(text, newline="")))
    if suffix == ".json":
        found = _json(path, text, None)
        return found if isinstance(found, list) else [found]
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    return [{"line": line.rstrip("\r")} if suffix == ".txt" else _json(path, line, number) for number, line in lines]


def _text(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ManifestError("encoding", f"{path}: not UTF-8 at byte {error.start}.") from None


def _json(path: Path, text: str, line: int | None) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        where = f"{path}, line {line}" if line else str(path)
        raise ManifestError("syntax", f"{where}: not JSON: {error}.", line=line) from None
