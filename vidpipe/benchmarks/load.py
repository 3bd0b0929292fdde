"""Predictions from a run directory, a results file, or another tool's JSONL (lmms-eval sample logs included)."""

from __future__ import annotations

import tempfile
from pathlib import Path

from vidpipe.benchmarks.load_parquet import read_results
from vidpipe.benchmarks.load_records import read_records
from vidpipe.benchmarks.predictions import Predictions
from vidpipe.benchmarks.source import read_source
from vidpipe.errors import ManifestError, RecipeError
from vidpipe.record.merge import is_complete, merge
from vidpipe.record.run_dir import RunDir
from vidpipe.record.shards import read_shards
from vidpipe.wording import counted


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
        return _checked(read_results(path, str(path), None))
    if path.suffix.lower() in (".jsonl", ".json"):
        (file,) = read_source(path).files
        return _checked(Predictions(str(path), read_records(file.records, benchmark, path.stem), None))
    raise RecipeError(f"{path}: give a run directory, a .parquet of results, or a .jsonl of predictions.")


def _of_run(folder: Path) -> Predictions:
    run_dir = RunDir(folder)
    if run_dir.read_run() is None:
        raise RecipeError(f"{folder} is not a run directory (it has no run.json). Type the -o of a vidpipe run.")
    expected = read_shards(run_dir).rows
    if is_complete(run_dir.results, expected):
        return _checked(read_results(run_dir.results, str(folder), expected))
    with tempfile.TemporaryDirectory() as temporary:
        merged = merge([folder], Path(temporary) / "rows.parquet")
        return _checked(read_results(merged.path, str(folder), merged.expected))


def _checked(predictions: Predictions) -> Predictions:
    ids = {row.id for row in predictions.rows}
    if len(ids) < len(predictions.rows):
        count = len(predictions.rows) - len(ids)
        raise ManifestError(
            "duplicate_id", f"{predictions.source}: {counted(count, 'row has', 'rows have')} an id that stands before."
        )
    return predictions
