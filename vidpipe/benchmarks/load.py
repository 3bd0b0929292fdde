"""Predictions from a run directory, a results file, or another tool's JSONL (lmms-eval sample logs included)."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from vidpipe.benchmarks.predictions import Prediction, Predictions
from vidpipe.benchmarks.profile import Question
from vidpipe.benchmarks.registry import IMPORTERS, get_importer
from vidpipe.benchmarks.source import read_source
from vidpipe.errors import ManifestError, RecipeError
from vidpipe.record.merge import PARTIAL_KEY, is_complete, merge
from vidpipe.record.run_dir import RunDir
from vidpipe.record.schema import KIND_KEY
from vidpipe.record.shards import read_shards

_COLUMNS = ("id", "text", "status", "clip_id", "answer", "question_type", "options", "scorer", "categories")
_TEXTS = ("text", "prediction", "response")
_ANSWERS = ("answer", "ground_truth", "target")


def load_predictions(path: Path, benchmark: str | None = None) -> Predictions:
    """Every row that `path` holds.

    Args:
        path: A run directory (at any time), a Parquet of results, or JSONL.
        benchmark: Importer that reads the `doc` of lmms-eval sample logs.

    Raises:
        RecipeError: it is none of these.
        ManifestError: the file is broken, or an id stands twice.
    """
    if path.is_dir():
        return _of_run(path)
    if path.suffix.lower() == ".parquet":
        return _of_parquet(path, str(path), None)
    if path.suffix.lower() in (".jsonl", ".json"):
        rows = [_of_record(record, n, benchmark) for n, record in enumerate(read_source(path).records, 1)]
        return _checked(Predictions(str(path), rows, None))
    raise RecipeError(f"{path}: give a run directory, a .parquet of results, or a .jsonl of predictions.")


def _of_run(folder: Path) -> Predictions:
    run_dir = RunDir(folder)
    if run_dir.read_run() is None:
        raise RecipeError(f"{folder} is not a run directory (it has no run.json). Type the -o of a vidpipe run.")
    expected = read_shards(run_dir).rows
    if is_complete(run_dir.results, expected):
        return _of_parquet(run_dir.results, str(folder), expected)
    with tempfile.TemporaryDirectory() as temporary:
        merged = merge([folder], Path(temporary) / "rows.parquet")
        return _of_parquet(merged.path, str(folder), merged.expected)


def _of_parquet(path: Path, source: str, expected: int | None) -> Predictions:
    try:
        schema = pq.read_schema(path)
        table = pq.read_table(path, columns=[name for name in _COLUMNS if name in schema.names])
    except (pa.ArrowInvalid, OSError) as error:
        raise ManifestError("not_found", f"{path}: not a Parquet file that can be read: {error}.") from None
    lacking = [name for name in ("id", "text", "answer") if name not in schema.names]
    if lacking:
        raise ManifestError("missing_column", f"{path} has no column {', '.join(lacking)}; nothing can be scored.")
    columns = {name: table[name].to_pylist() for name in table.column_names}
    as_json = {name for name in columns if (schema.field(name).metadata or {}).get(KIND_KEY) == b"json"}
    nothing = [None] * table.num_rows

    def decoded(name: str) -> list[Any]:
        values = columns.get(name, nothing)
        return list(map(_decoded, values)) if name in as_json or name in ("options", "categories") else values

    rows = [
        Prediction(
            str(row_id),
            text if status in (None, "ok", "length") else None,
            Question(answer, question_type or "", tuple(options or ())),
            clip or str(row_id),
            scorer,
            status == "length",
            categories or {},
        )
        for row_id, text, status, clip, answer, question_type, options, scorer, categories in zip(
            *(decoded(name) for name in _COLUMNS), strict=True
        )
    ]
    partial = (schema.metadata or {}).get(PARTIAL_KEY.encode()) == b"true"
    return _checked(Predictions(source, rows, expected, partial))


@lru_cache(maxsize=100_000)
def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _decoded(value: Any) -> Any:
    return _from_json(value) if isinstance(value, str) else value


def _of_record(record: Mapping[str, Any], number: int, benchmark: str | None) -> Prediction:
    """A line of JSON: our own column names, or a sample of lmms-eval (`doc`, `filtered_resps`)."""
    if "filtered_resps" in record:
        replies, doc = record["filtered_resps"], record.get("doc") or {}
        if benchmark in IMPORTERS:
            doc = get_importer(benchmark or "").row(doc, number - 1)
        record = {"id": record.get("doc_id", number), **doc, "text": replies[0] if replies else None}
    text = next((record[name] for name in _TEXTS if name in record), None)
    answer = next((record[name] for name in _ANSWERS if name in record), None)
    if "id" not in record:
        raise ManifestError("missing_column", f"record {number}: no id. Found: {', '.join(record)}.", line=number)
    if isinstance(text, list):
        text = text[0] if text else None
    if text is not None and not isinstance(text, str):
        raise ManifestError("syntax", f"record {number}: the reply must be a text, found {text!r}.", line=number)
    return Prediction(
        str(record["id"]),
        text,
        Question(answer, str(record.get("question_type") or ""), tuple(record.get("options") or ())),
        str(record.get("clip_id") or record.get("video") or record["id"]),
        record.get("scorer"),
        record.get("status") == "length",
        record.get("categories") or {},
    )


def _checked(predictions: Predictions) -> Predictions:
    ids = {row.id for row in predictions.rows}
    if len(ids) < len(predictions.rows):
        count = len(predictions.rows) - len(ids)
        raise ManifestError("duplicate_id", f"{predictions.source}: {count} rows have an id that stands before.")
    return predictions
