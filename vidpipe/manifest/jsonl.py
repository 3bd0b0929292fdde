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
from dataclasses import replace
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
            item = _read_line(number, line)
            if isinstance(item, Fault) and (other := other_form(line)) is not None and number == 1:
                yield replace(item, message=f"line 1: {other}")
                return  # each further line would be a fault that says nothing
            yield item


def other_form(raw: bytes) -> str | None:
    """What a file that begins with the line `raw`, which is no row, seems to be instead, and how to change that."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "the file is UTF-16, not UTF-8. Type: iconv -f UTF-16 -t UTF-8 IN > OUT"
    if raw.startswith((b"\x1f\x8b", b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ")):
        return "the file is compressed. Unpack it first."
    if raw.startswith(b"PAR1"):
        return "the file is Parquet. Rename it to end in .parquet."
    if raw.lstrip().startswith(b"["):
        return "not a JSON object a line: the file begins a JSON array. Type: jq -c '.[]' IN > OUT"
    if raw.strip() == b"{":
        return "not a JSON object a line: this one goes over several lines. Type: jq -c . IN > OUT"
    return None


def decode_strictly(text: str) -> Any:
    """The JSON value in `text`; no key twice, no `NaN`.

    Raises:
        ValueError, RecursionError: it is none.
    """
    return _DECODER.decode(text)


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
