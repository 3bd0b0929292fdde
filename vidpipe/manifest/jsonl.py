"""JSON Lines: one object a line, read strictly.

Python's `json` keeps the last of two equal keys, and most readers split lines at
U+2028 or round integers above 2^53. All of that loses data silently, so lines are
split at the newline byte only, duplicate keys are faults, and numbers keep their value.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vidpipe.manifest.row import Fault, Record

BOM = b"\xef\xbb\xbf"


class _DuplicateKeyError(ValueError):
    pass


def read_jsonl(path: Path) -> Iterator[Record | Fault]:
    """Records of the file at `path` in file order; a fault stands where its line stood."""
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            line = raw.removeprefix(BOM) if number == 1 else raw
            if not line.strip(b" \t\r\n"):
                continue
            yield _read_line(number, line)


def _read_line(number: int, raw: bytes) -> Record | Fault:
    try:
        value = _DECODER.decode(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        return Fault(
            "encoding",
            f"line {number}: byte {error.start + 1} is not UTF-8 (0x{raw[error.start]:02x}). Save the file as UTF-8.",
            line=number,
        )
    except _DuplicateKeyError as error:
        return Fault("duplicate_key", f"line {number}: key {error} stands twice in one object. Keep one.", line=number)
    except json.JSONDecodeError as error:
        return Fault("syntax", f"line {number}, column {error.colno}: not JSON: {error.msg}.", line=number)
    except (ValueError, RecursionError) as error:
        return Fault("syntax", f"line {number}: not JSON that can be read: {error}.", line=number)
    if not isinstance(value, dict):
        found = type(value).__name__
        return Fault("syntax", f"line {number}: a row must be a JSON object {{...}}, found {found}.", line=number)
    return Record(number, value)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise _DuplicateKeyError(repr(key))
        values[sys.intern(key)] = value  # else each row would hold its columns' names anew
    return values


def _not_json(word: str) -> float:
    raise ValueError(f"{word} is not a JSON number; write null, or the word in quotes")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_not_json)
