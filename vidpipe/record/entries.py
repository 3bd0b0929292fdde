"""What stands in a journal: rows, tries that are not to be the last, the settings that made them, starts of rows.

The first byte tells which, so that publishing a shard need not parse what it only copies.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import orjson

from vidpipe.record.row import OutputRow
from vidpipe.redact import redact

_ROW, _TRY, _SETTINGS, _STARTED = b"R", b"T", b"C", b"S"


@dataclass(frozen=True)
class Entry:
    """One journal entry; one of the four is not None."""

    row: dict[str, Any] | None = None
    """Output columns."""
    tried: OutputRow | None = None
    """A try, without the manifest's columns."""
    settings: dict[str, Any] | None = None
    """Settings by hash."""
    started: str | None = None
    """Id of a row that was given to the engine."""


def row(line: bytes) -> bytes:
    """Entry of a finished row, a line of `schema.to_json`."""
    return _ROW + line


def tried(line: bytes) -> bytes:
    """Entry of a try after which the row is asked again, a line of `schema.to_json` without manifest columns."""
    return _TRY + line


def settings(sha: str, values: Mapping[str, Any]) -> bytes:
    """Entry of settings that rows refer to by hash."""
    return _SETTINGS + redact(json.dumps({sha: values})).encode()


def started(row_id: str) -> bytes:
    """Entry of a row that is about to be given to the engine."""
    return _STARTED + row_id.encode()


def rows(payloads: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of the finished rows among `payloads`."""
    return (payload[1:] for payload in payloads if payload[:1] == _ROW)


def read(payload: bytes) -> Entry:
    """The entry that `payload` is."""
    kind, content = payload[:1], payload[1:]
    if kind == _STARTED:
        return Entry(started=content.decode())
    if kind == _TRY:
        return Entry(tried=msgspec.json.decode(content, type=OutputRow))
    return Entry(row=orjson.loads(content)) if kind == _ROW else Entry(settings=orjson.loads(content))
