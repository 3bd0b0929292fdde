"""What an importer is, and what all of them do: read a published file, check it, choose rows, name what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vidpipe.benchmarks.source import Source
from vidpipe.errors import ManifestError, RecipeError

Record = Mapping[str, Any]
TYPE_NAMES = {str: "text", int: "integer", float: "number", bool: "true or false", list: "list", type(None): "null"}


@dataclass(frozen=True)
class Importer:
    """How one benchmark's published records become manifest rows."""

    name: str
    profile: str
    """Scorer profile of the rows."""
    columns: Mapping[str, tuple[type, ...]]
    """Columns that a record must have, and the types of their values; others are copied to `meta`."""
    row: Callable[[Record, int], dict[str, Any]]
    """A record and its number from 0 to a row; `id` and `video` set, what is null left out."""
    prompt: str
    """Jinja2 template of the user text, as a recipe takes it."""
    prompt_source: str
    """Whose prompt this is."""
    max_tokens: int
    """Longest answer of the published setting, in tokens."""
    from_file_name: str | None = None
    """Column that the published records lack, because the file's name says it."""
    subsets: Mapping[str, Callable[[Record], bool]] = field(default_factory=dict)
    """Published parts of the file by name; raise KeyError where the file does not tell."""


@dataclass(frozen=True)
class Imported:
    """Rows of a benchmark, ready to be written."""

    rows: tuple[dict[str, Any], ...]
    source_rows: int
    missing_videos: tuple[str, ...]
    """Paths under the media root that do not exist, in order."""

    @property
    def question_types(self) -> dict[str, int]:
        """Rows by question type."""
        return dict(sorted(Counter(str(row.get("question_type")) for row in self.rows).items()))


def import_rows(
    importer: Importer,
    source: Source,
    media_root: Path,
    *,
    subset: str | None = None,
    limit: int | None = None,
    stratify: str | None = None,
) -> Imported:
    """Rows in the file's order.

    Args:
        importer: The benchmark's.
        source: The published file.
        media_root: Where its videos lie.
        subset: Name of a published part.
        limit: Keep so many rows.
        stratify: Column whose values share the limit evenly, so that none is lost.

    Raises:
        ManifestError: the file is not what the benchmark publishes.
        RecipeError: the asked choice is impossible.
    """
    named = {importer.from_file_name: source.path.stem} if importer.from_file_name else {}
    records = [_checked(importer, source, {**named, **record}, n) for n, record in enumerate(source.records, 1)]
    keep = _subset(importer, source, subset)
    rows = [importer.row(record, n) for n, record in enumerate(records) if keep(record)]
    _refuse_duplicates(source, rows)
    rows = _limited(rows, limit, stratify)
    videos = dict.fromkeys(row["video"] for row in rows)
    missing = tuple(video for video in videos if not (media_root / video).exists())
    return Imported(tuple(rows), len(records), missing)


def meta(record: Record, importer_columns: Mapping[str, object]) -> dict[str, Any]:
    """The columns that the mapping does not name."""
    return {name: value for name, value in record.items() if name not in importer_columns}


def _checked(importer: Importer, source: Source, record: Record, line: int) -> Record:
    for name, types in importer.columns.items():
        if name not in record and type(None) not in types:
            found = ", ".join(record)
            raise ManifestError(
                "missing_column",
                f"{source.path}, record {line}: no column {name!r}, which {importer.name} publishes. Found: {found}.",
                line=line,
            )
        value = record.get(name)
        if type(value) not in types:
            expected = " or ".join(TYPE_NAMES.get(kind, kind.__name__) for kind in types)
            raise ManifestError(
                "syntax",
                f"{source.path}, record {line}, column {name}: {expected} was published, found {value!r}. "
                "Give the file as it was published.",
                line=line,
            )
    return record


def _subset(importer: Importer, source: Source, name: str | None) -> Callable[[Record], bool]:
    if name is None:
        return lambda record: True
    if name not in importer.subsets:
        known = ", ".join(importer.subsets) or "none"
        raise RecipeError(f"--subset: {importer.name} has no part {name!r}. It has: {known}.")
    choose = importer.subsets[name]

    def keep(record: Record) -> bool:
        try:
            return choose(record)
        except KeyError as error:
            raise RecipeError(
                f"--subset {name}: {source.path} has no column {error}, which tells that part. "
                "Give the newer published file."
            ) from None

    return keep


def _refuse_duplicates(source: Source, rows: Sequence[Mapping[str, Any]]) -> None:
    counts = Counter(row["id"] for row in rows)
    if twice := [row_id for row_id, count in counts.items() if count > 1]:
        raise ManifestError("duplicate_id", f"{source.path}: {len(twice)} ids stand twice, for example {twice[0]!r}.")


def _limited(rows: list[dict[str, Any]], limit: int | None, stratify: str | None) -> list[dict[str, Any]]:
    if limit is None or limit >= len(rows):
        return rows
    if stratify is None:
        return rows[:limit]
    strata: dict[Any, list[int]] = {}
    for place, row in enumerate(rows):
        if stratify not in row:
            raise RecipeError(f"--stratify: row {row['id']!r} has no column {stratify!r}. It has: {', '.join(row)}.")
        strata.setdefault(str(row[stratify]), []).append(place)
    if limit < len(strata):
        raise RecipeError(f"--limit {limit} is less than the {len(strata)} values of {stratify}. Give {len(strata)}.")
    ranked = sorted(
        (rank, stratum, place) for stratum, places in enumerate(strata.values()) for rank, place in enumerate(places)
    )  # the first of every stratum, then the second of every one that has two, ...
    return [rows[place] for place in sorted(place for _, _, place in ranked[:limit])]
