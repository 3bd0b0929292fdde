"""What all importers do: check a published file's records, choose rows, find their media, name what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from vidpipe.benchmarks.importer import Importer, Record
from vidpipe.benchmarks.source import Source, SourceFile, read_json
from vidpipe.errors import ManifestError, RecipeError
from vidpipe.recipe.resolve import reach

TYPE_NAMES = {str: "text", int: "integer", float: "number", bool: "true or false", list: "list", type(None): "null"}


@dataclass(frozen=True)
class Choice:
    """What of a benchmark is wanted."""

    subset: str | None = None
    """Name of a published part."""
    limit: int | None = None
    """Keep so many rows."""
    stratify: str | None = None
    """Column whose values share the limit evenly, so that none is lost."""
    subtitles: bool = False
    """Give rows their subtitle files."""
    precut: bool = False
    """Videos were cut to their records' bounds beforehand."""


@dataclass(frozen=True)
class Imported:
    """Rows of a benchmark, ready to be written."""

    rows: tuple[dict[str, Any], ...]
    source_rows: int
    missing_videos: tuple[str, ...]
    """Paths under the media root that do not exist, in order."""
    missing_subtitles: tuple[str, ...] = ()
    """Subtitle files that were asked for and do not exist; their rows have none."""

    @property
    def question_types(self) -> dict[str, int]:
        """Rows by question type; empty where the benchmark has none."""
        return dict(sorted(Counter(row["question_type"] for row in self.rows if "question_type" in row).items()))


def import_rows(importer: Importer, source: Source, media_root: Path, choice: Choice = Choice()) -> Imported:
    """Rows in the order of the files and their records.

    Args:
        importer: The benchmark's.
        source: The published files.
        media_root: Where its videos lie.
        choice: What of it is wanted.

    Raises:
        ManifestError: the files are not what the benchmark publishes.
        RecipeError: the asked choice is impossible.
    """
    keep = _subset(importer, source, choice.subset)
    rows: list[dict[str, Any]] = []
    count = 0
    lost_subtitles: dict[str, None] = {}
    for file in source.files:
        for number, record in enumerate(_records(importer, file)):
            count += 1
            if keep(record):
                row = _row(importer, file.path, record, number)
                if choice.subtitles:
                    row |= _subtitles(importer, record, media_root, lost_subtitles)
                rows.append(_precut(importer, row) if choice.precut else row)
    _refuse_duplicates(source, rows)
    _number_sets(rows)
    rows = [_found(row, importer.suffixes, media_root) for row in _limited(rows, choice.limit, choice.stratify)]
    media = dict.fromkeys(row.get("video") or row["frames"] for row in rows)
    missing = tuple(path for path in media if not (media_root / path).exists())
    return Imported(tuple(rows), count, missing, tuple(lost_subtitles))


def _row(importer: Importer, path: Path, record: Record, number: int) -> dict[str, Any]:
    try:
        return importer.make_row(record, number)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ManifestError(
            "syntax",
            f"{path}, record {number + 1}: its values are not what {importer.name} publishes: {type(error).__name__} "
            f"{error}. Give the file as it was published.",
            line=number + 1,
        ) from None


def _records(importer: Importer, file: SourceFile) -> Iterator[Record]:
    named = {importer.from_file_name: file.path.stem} if importer.from_file_name else {}
    more = _companion(importer, file.path)
    flat = (record for whole in file.records for record in importer.expand(whole))
    for number, record in enumerate(flat, 1):
        added = more.get(str(record.get(importer.companion.key)), {}) if importer.companion else {}
        yield _checked(importer, file.path, {**named, **record, **added}, number)


def _companion(importer: Importer, path: Path) -> Mapping[str, Record]:
    if importer.companion is None:
        return {}
    beside = path.with_name(importer.companion.name(path))
    return importer.companion.columns(read_json(beside)) if beside != path and beside.exists() else {}


def _subtitles(importer: Importer, record: Record, media_root: Path, lost: dict[str, None]) -> dict[str, Any]:
    if importer.subtitles is None:
        raise RecipeError(f"--subtitles: {importer.name} publishes none.")
    columns = importer.subtitles(record)
    if (media_root / columns["subtitles"]).exists():
        return columns
    lost[columns["subtitles"]] = None
    return {}


def _precut(importer: Importer, row: dict[str, Any]) -> dict[str, Any]:
    """The row on its own piece: another folder, and no window."""
    if importer.precut is None:
        raise RecipeError(f"--precut: {importer.name} has no videos that are cut beforehand.")
    kept = {name: value for name, value in row.items() if not name.startswith(("clip_start", "clip_end", "frames"))}
    video = row.get("video") or row["frames"]
    folder = next((whole for whole in importer.precut if video.startswith(f"{whole}/")), None)
    return {**kept, "video": video.replace(folder, importer.precut[folder], 1) if folder else video}


def _found(row: dict[str, Any], suffixes: Sequence[str], media_root: Path) -> dict[str, Any]:
    """The row with the ending that its video has on this disk."""
    if suffixes and not (media_root / row["video"]).exists():
        for suffix in suffixes:
            other = str(PurePosixPath(row["video"]).with_suffix(suffix))
            if (media_root / other).exists():
                return {**row, "video": other}
    return row


def _checked(importer: Importer, path: Path, record: Record, line: int) -> Record:
    if None in record:  # what the CSV reader has for cells without a column
        raise ManifestError("ragged_row", f"{path}, record {line}: more cells than columns.", line=line)
    for name, types in importer.columns.items():
        if name not in record and type(None) not in types:
            found = ", ".join(record)
            raise ManifestError(
                "missing_column",
                f"{path}, record {line}: no column {name!r}, which {importer.name} publishes. Found: {found}.",
                line=line,
            )
        value = record.get(name)
        if type(value) not in types:
            expected = " or ".join(TYPE_NAMES.get(kind, kind.__name__) for kind in types)
            raise ManifestError(
                "syntax",
                f"{path}, record {line}, column {name}: {expected} was published, found {value!r}. "
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


def _number_sets(rows: Sequence[dict[str, Any]]) -> None:
    """Give the rows of each set their place in it, in the order of the file."""
    counts: Counter[str] = Counter()
    for row in rows:
        if (name := row.get("set_id")) is not None:
            row["set_index"] = counts[name]
            counts[name] += 1


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
        if (value := reach(row, stratify)) is None:
            raise RecipeError(f"--stratify: row {row['id']!r} has no column {stratify!r}. It has: {', '.join(row)}.")
        strata.setdefault(str(value), []).append(place)
    if limit < len(strata):
        raise RecipeError(f"--limit {limit} is less than the {len(strata)} values of {stratify}. Give {len(strata)}.")
    ranked = sorted(
        (rank, stratum, place) for stratum, places in enumerate(strata.values()) for rank, place in enumerate(places)
    )  # the first of every stratum, then the second of every one that has two, ...
    return [rows[place] for place in sorted(place for _, _, place in ranked[:limit])]
