"""JSON Lines: one object a line, read strictly.

Python's `json` keeps the last of two equal keys, and most readers split lines at
U+2028 or round integers above 2^53. All of that loses data silently, so lines are
split at the newline byte only, duplicate keys are faults, and numbers keep their value.
Most lines are so simple that a faster parser certainly gives the same; it reads those.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from vidpipe.manifest.row import Fault, Record

BOM = b"\xef\xbb\xbf"
EXACT_BELOW = 2.0**63
"""From here on a float of orjson may have been an integer."""
_KEY_ENDS = re.compile(rb'"[ \t\r\n]*:')
_PLAIN_KINDS = frozenset({str, int, float, bool, type(None)})


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
    if (plain := _read_plain(raw)) is not None:
        return Record(number, plain)
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


def _read_plain(raw: bytes) -> dict[str, Any] | None:
    """The row that `raw` is, or None where only the slow parser tells whether and how it can be read.

    A line has at least as many ends of keys (and colons) as keys, so if there are no more than
    the parsed object has, no key stands twice. Deeper objects go the slow way, and numbers that
    orjson may have rounded.
    """
    try:
        values = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(values, dict):
        return None
    keys = len(values)
    for value in values.values():
        if type(value) is str:
            continue
        if type(value) is dict:
            keys += len(value)
            if not all(map(_is_plain, value.values())):
                return None
        elif not all(map(_is_plain, value if type(value) is list else (value,))):
            return None
    if raw.count(b":") != keys and len(_KEY_ENDS.findall(raw)) != keys:
        return None
    return values


def _is_plain(value: Any) -> bool:
    kind = type(value)
    return kind is str or (kind in _PLAIN_KINDS and (kind is not float or -EXACT_BELOW < value < EXACT_BELOW))


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
