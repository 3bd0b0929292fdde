"""One explicit Arrow schema for every part of a run, also for an empty one.

Open-typed manifest values (an `answer` that is a text in one row and a list in the
next) are JSON text, and each field's metadata says so; nothing is inferred from data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
import pyarrow as pa
from pyarrow import json as pa_json

from vidpipe.manifest.row import ColumnKind
from vidpipe.record.row import OutputRow
from vidpipe.redact import redact

# Numbers that a file's header or a recipe makes are of 64 bits: one row that has a greater one than its column takes
# would end the run.
_FRAMES = pa.struct(
    [
        ("count", pa.int32()),
        ("indices", pa.list_(pa.int64())),
        ("times_s", pa.list_(pa.float64())),
        ("size_wh", pa.list_(pa.int64())),
        ("sha", pa.string()),
    ]
)
_REPLY = pa.struct([("flags", pa.list_(pa.string())), ("parse", pa.string())])
_TRY = pa.struct(
    [
        ("attempt", pa.int32()),
        *((name, pa.string()) for name in ("status", "error_kind", "error", "text", "finish_reason")),
        ("reply", _REPLY),
        ("tokens_out", pa.int32()),
        ("resolved_sha", pa.string()),
    ]
)
_FIELDS: list[tuple[str, pa.DataType]] = [
    ("id", pa.string()),
    ("clip_id", pa.string()),
    ("status", pa.string()),
    ("error_kind", pa.string()),
    ("error", pa.string()),
    (
        "media",
        pa.struct([("outcome", pa.string()), ("frames_missing", pa.int64()), ("notes", pa.list_(pa.string()))]),
    ),
    ("prompt_sha", pa.string()),
    ("text", pa.string()),
    ("finish_reason", pa.string()),
    ("reply", _REPLY),
    ("tokens_in", pa.int32()),
    ("tokens_out", pa.int32()),
    ("frames", _FRAMES),
    ("more_frames", pa.list_(_FRAMES)),
    ("images", pa.list_(pa.struct([("size_wh", pa.list_(pa.int64())), ("sha", pa.string())]))),
    ("vision_tokens", pa.struct([("asked", pa.int64()), ("kept", pa.int64())])),
    ("resolved", pa.struct([(name, pa.string()) for name in ("sha", "model", "engine", "vidpipe")])),
    ("seconds", pa.struct([(name, pa.float64()) for name in ("decode", "prepare", "queue", "engine")])),
    ("attempt", pa.int32()),
    ("other_tries", pa.list_(_TRY)),
]
OWN_COLUMNS = frozenset(name for name, _ in _FIELDS)
KIND_KEY = b"vidpipe.kind"
_PREFIX = "manifest."


def output_schema(columns: Mapping[str, ColumnKind]) -> pa.Schema:
    """The schema of a run whose manifest has `columns`.

    A manifest column with the name of one of ours becomes `manifest.<name>` (see `output_name`);
    `id` and `clip_id` are shared.
    """
    fields = [pa.field(name, kind) for name, kind in _FIELDS]
    for name, kind in columns.items():
        if name not in ("id", "clip_id"):
            fields.append(pa.field(output_name(name), pa.string(), metadata={KIND_KEY: kind.encode()}))
    return pa.schema(fields)


def output_name(column: str) -> str:
    """Name of a manifest column in the output; no two columns get one name.

    A result can be a manifest again, which then has both `status` and `manifest.status`.
    """
    own = column
    while own.startswith(_PREFIX):
        own = own.removeprefix(_PREFIX)
    return _PREFIX + column if own in OWN_COLUMNS else column


def to_json(row: OutputRow, columns: Mapping[str, ColumnKind]) -> bytes:
    """A row as one line of JSON with the columns of `output_schema(columns)`, without secrets but for the reply.

    Written with orjson: the standard library takes ten times as long over the frame times,
    more than everything else that recording does.
    """
    values = {**vars(row)}
    del values["manifest"]
    for name in ("clip_id", "error"):
        values[name] = None if values[name] is None else redact(values[name])
    if row.media is not None and row.media.notes:
        values["media"] = replace(row.media, notes=list(map(redact, row.media.notes)))
    values["other_tries"] = [replace(one, error=one.error and redact(one.error)) for one in row.other_tries]
    for name, kind in columns.items():
        if name not in ("id", "clip_id"):
            cell = _cell(row.manifest.get(name), kind)
            values[output_name(name)] = None if cell is None else redact(cell)
    try:
        return orjson.dumps(values)
    except orjson.JSONEncodeError:  # half a surrogate pair, which UTF-8 cannot hold
        return orjson.dumps(_storable(json.loads(json.dumps(values, default=vars))))


def to_table(lines: Sequence[bytes], columns: Mapping[str, ColumnKind]) -> pa.Table:
    """Lines of `to_json` as a table."""
    schema = output_schema(columns)
    if not lines:
        return schema.empty_table()
    text = b"\n".join(lines)
    table = pa_json.read_json(
        pa.BufferReader(text),
        read_options=pa_json.ReadOptions(use_threads=False, block_size=len(text) + 1),
        parse_options=pa_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )
    return table.select(schema.names).cast(schema)


def _storable(value: Any) -> Any:
    """The value, with U+FFFD for each half of a surrogate pair in its texts."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {name: _storable(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_storable(item) for item in value]
    return value


def _strict(value: Any) -> Any:
    """The value, with words in quotes for the numbers that JSON lacks: null would say that there was none."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {name: _strict(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_strict(item) for item in value]
    return value


def _cell(value: Any, kind: ColumnKind) -> str | None:
    if value is None:
        return None
    if kind == "text" and isinstance(value, str):
        return value
    value = _strict(value)
    text = json.dumps(value, ensure_ascii=False, default=str)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, default=str)  # escapes keep what UTF-8 cannot hold
    return text
