"""Replies from a run's Parquet, with what its recipe says of scoring."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from vidpipe.benchmarks.predictions import Prediction, Predictions, Scoring
from vidpipe.benchmarks.profile import Question
from vidpipe.errors import ManifestError, RecipeError, RowError
from vidpipe.manifest.cells import whole_number
from vidpipe.manifest.scoring import answers_of, categories_of, options_of
from vidpipe.recipe.resolve import fingerprint, reach
from vidpipe.record.merge import PARTIAL_KEY
from vidpipe.record.schema import KIND_KEY
from vidpipe.record.shard_writer import RUN_KEY

_COLUMNS = (
    "id", "text", "status", "clip_id", "answer", "question_type", "options", "scorer", "categories",
    "answer_type", "answers", "question", "set_id", "set_index",
)  # fmt: skip
_OPEN_TYPED = ("options", "categories", "answers", "set_index")
_CATEGORY = "categories."
Facts = tuple[tuple[str, ...], tuple[Any, ...], Mapping[str, str], int]
NO_FACTS: Facts = ((), (), {}, 0)


def read_results(path: Path, source: str, expected: int | None) -> Predictions:
    """Every row of a Parquet of results.

    Args:
        path: The file.
        source: What messages call it.
        expected: Rows of the manifest, where that is known.

    Raises:
        ManifestError: it cannot be read, or nothing in it can be scored.
        RecipeError: its recipe clusters by a column that it has not.
    """
    try:
        schema = pq.read_schema(path)
        run = _run(schema.metadata or {})
        scoring = _scoring(run.get("given", {}))
        extra = _extra_columns(schema, scoring)
        wanted = dict.fromkeys((*_COLUMNS, *extra))
        table = pq.read_table(path, columns=[name for name in wanted if name in schema.names])
    except (pa.ArrowInvalid, OSError) as error:
        raise ManifestError("not_found", f"{path}: not a Parquet file that can be read: {error}.") from None
    lacking = [name for name in ("id", "text", "answer") if name not in schema.names]
    if lacking:
        raise ManifestError("missing_column", f"{path} has no column {', '.join(lacking)}; nothing can be scored.")
    gc.disable()  # millions of small objects and no garbage: the collector would go through all of them again and again
    try:
        rows = list(_rows(table))
    finally:
        gc.enable()
    if extra:
        columns = {name: _decoded(table, name) for name in extra if name in schema.names}
        records = ({name: values[place] for name, values in columns.items()} for place in range(len(rows)))
        rows = [_with_columns(row, record, scoring) for row, record in zip(rows, records, strict=True)]
    partial = (schema.metadata or {}).get(PARTIAL_KEY.encode()) == b"true"
    return Predictions(source, rows, expected, partial, scoring, _asked(run.get("recipe", {})))


def _rows(table: pa.Table) -> Iterator[Prediction]:
    for (
        row_id, text, status, clip, answer, question_type, options, scorer, categories,
        answer_type, answers, asked, set_id, set_index,
    ) in zip(*(_decoded(table, name) for name in _COLUMNS), strict=True):  # fmt: skip
        reply = text if status in (None, "ok", "length") else None
        try:
            facts = _facts(options, answers, categories, set_index)
        except RowError as error:
            if reply is not None:
                raise ManifestError("syntax", f"row {row_id!r}: {error}") from None
            facts = NO_FACTS  # that may be why it failed
        yield Prediction(
            str(row_id),
            reply,
            Question(answer, question_type or "", facts[0], answer_type, facts[1], asked or ""),
            clip or str(row_id),
            scorer,
            status == "length",
            facts[2],
            set_id,
            facts[3],
        )


def _facts(options: Any, answers: Any, categories: Any, set_index: Any) -> Facts:
    """Options, further answers, categories and place in the set, of one row.

    Raises:
        RowError: one has another type.
    """
    return (
        () if options is None else options_of({"options": options}),
        () if answers is None else answers_of({"answers": answers}),
        {} if categories is None else categories_of({"categories": categories}),
        0 if set_index is None else whole_number({"set_index": set_index}, "set_index") or 0,
    )


def _run(metadata: Mapping[bytes, bytes]) -> dict[str, Any]:
    """What the file says of its run; of several runs in one file, of the first one."""
    run = json.loads(metadata.get(RUN_KEY.encode(), b"{}"))
    found: dict[str, Any] = run[0] if isinstance(run, list) else run
    return found


def _asked(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The sections of a recipe that decide what the model is asked, without the values that nobody set."""
    if not recipe:
        return {}
    sections = {name: recipe.get(name) or {} for name in ("sampling", "pruning", "generation")}
    facts = {name: {key: value for key, value in part.items() if value is not None} for name, part in sections.items()}
    words = {name: fingerprint(recipe[name]) for name in ("prompt", "system") if recipe.get(name)}
    words |= {"template": recipe["template"]} if recipe.get("template") else {}
    overrides = {"overrides": recipe["overrides"]} if recipe.get("overrides") else {}
    model = recipe.get("model", {}).get("path")
    return {"model": model, **{name: part for name, part in facts.items() if part}, **overrides, **words}


def _scoring(given: Mapping[str, Any]) -> Scoring:
    """What the recipe of the run says of scoring."""
    breakdowns = given.get("breakdowns")
    return Scoring(
        given.get("scorer"),
        given.get("cluster_by"),
        None if breakdowns is None else tuple(breakdowns),
        given.get("strip_reasoning", False),
    )


def _extra_columns(schema: pa.Schema, scoring: Scoring) -> list[str]:
    """Columns that the recipe wants to be read, and categories that CSV has as columns of their own.

    Raises:
        RecipeError: there is no such column to cluster by.
    """
    asked = [name for name in (scoring.cluster_by, *(scoring.breakdowns or ())) if name]
    heads = [name.partition(".")[0] for name in asked]
    if scoring.cluster_by and not {asked[0], heads[0]} & set(schema.names):
        raise RecipeError(f"cluster_by: there is no column {asked[0]!r}. Found: {', '.join(schema.names)}.")
    return list(dict.fromkeys([*(name for name in schema.names if name.startswith(_CATEGORY)), *asked, *heads]))


def _with_columns(row: Prediction, record: Mapping[str, Any], scoring: Scoring) -> Prediction:
    """The row with the clip and the categories that its recipe takes from other columns."""
    clip = reach(record, scoring.cluster_by) if scoring.cluster_by else None
    found = {name.removeprefix(_CATEGORY): value for name, value in record.items() if name.startswith(_CATEGORY)}
    found |= {name: reach(record, name) for name in scoring.breakdowns or ()}
    more = {name: str(value) for name, value in found.items() if value is not None and name not in row.categories}
    return replace(row, clip=row.clip if clip is None else str(clip), categories={**row.categories, **more})


def _decoded(table: pa.Table, name: str) -> list[Any]:
    """A column's values; JSON text where the column is open-typed. Nulls where there is no such column."""
    if name not in table.column_names:
        return [None] * table.num_rows
    column = table[name]
    values: list[Any] = (
        column.to_pylist(maps_as_pydicts="strict") if pa.types.is_map(column.type) else column.to_pylist()
    )
    kind = (table.schema.field(name).metadata or {}).get(KIND_KEY)
    return list(map(_value, values)) if kind == b"json" or name in _OPEN_TYPED else values


def _value(value: Any) -> Any:
    return _from_json(value) if isinstance(value, str) else value


@lru_cache(maxsize=100_000)
def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
