"""What a judge model said of replies: asked elsewhere, kept in a file, joined by id. Nothing is asked here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from vidpipe.benchmarks.load_records import TEXTS
from vidpipe.benchmarks.predictions import Predictions
from vidpipe.benchmarks.source import read_source
from vidpipe.errors import ManifestError


def with_judgements(predictions: Predictions, path: Path) -> Predictions:
    """The predictions with the judge's replies; a row that the file does not have was judged with no words.

    Args:
        predictions: Replies of the model under test.
        path: JSON lines of `id` and the judge's `text` (or `prediction`, `response`).

    Raises:
        ManifestError: the file is broken, an id stands twice, or no row is about an id in it.
    """
    found: dict[str, str] = {}
    for number, record in enumerate(read_source(path).files[0].records, 1):
        text = next((record[name] for name in TEXTS if name in record), None)
        if "id" not in record or not isinstance(text, str):
            raise ManifestError("syntax", f"--judge {path}, record {number}: give an id and a text.", line=number)
        if str(record["id"]) in found:
            raise ManifestError("duplicate_id", f"--judge {path}, record {number}: id {record['id']!r} stood before.")
        found[str(record["id"])] = text
    if not found.keys() & {row.id for row in predictions.rows}:
        raise ManifestError("not_found", f"--judge {path}: none of its ids is one of {predictions.source}.")
    rows = [replace(row, question=replace(row.question, judgement=found.get(row.id, ""))) for row in predictions.rows]
    return replace(predictions, rows=rows)
