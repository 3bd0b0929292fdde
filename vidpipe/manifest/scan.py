"""A manifest as a whole: its rows in order, its columns, and every fault in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vidpipe.errors import ManifestError
from vidpipe.manifest.delimited import header_of, read_delimited
from vidpipe.manifest.folder import VIDEO_SUFFIXES, read_folder, read_single
from vidpipe.manifest.jsonl import read_jsonl
from vidpipe.manifest.media import MEDIA_COLUMNS
from vidpipe.manifest.row import TEXT_COLUMNS, BadRow, ColumnKind, Fault, Record, Row
from vidpipe.manifest.rows import to_row

DELIMITERS = {".csv": ",", ".tsv": "\t"}
JSON_SUFFIXES = frozenset({".jsonl", ".ndjson"})
KNOWN = ".jsonl, .csv, .tsv, .parquet, a folder of clips or one clip"


@dataclass
class Manifest:
    """Everything that is known of a manifest after one pass."""

    rows: list[Row | BadRow] = field(default_factory=list)
    count: int = 0
    """Rows that were read, whether they were kept or not."""
    columns: dict[str, ColumnKind] = field(default_factory=dict)
    """The manifest's columns in order of appearance; `json` ones hold values of any type."""
    faults: list[Fault] = field(default_factory=list)

    @property
    def refused(self) -> bool:
        """Whether the file cannot be trusted as a whole."""
        return any(fault.refuses_manifest for fault in self.faults)

    def raise_if_refused(self, path: Path) -> None:
        """Refuse a file that cannot be trusted as a whole.

        Raises:
            ManifestError: naming the first such fault and how many more there are.
        """
        refusing = [fault for fault in self.faults if fault.refuses_manifest]
        if refusing:
            first, more = refusing[0], len(refusing) - 1
            hint = f" ({more} more: vidpipe check lists them.)" if more else ""
            raise ManifestError(first.kind, f"manifest {path}: {first.message}{hint}", line=first.line)  # type: ignore[arg-type]


def scan_manifest(path: Path, *, recipe_has_prompt: bool) -> Manifest:
    """Read the manifest at `path` to its end, keeping every fault.

    Args:
        path: A file of rows, a folder of clips, or one clip.
        recipe_has_prompt: Whether rows without a question get one from the recipe.
    """
    manifest = Manifest()
    manifest.rows.extend(scan_rows(path, manifest, recipe_has_prompt=recipe_has_prompt))
    return manifest


def scan_rows(path: Path, manifest: Manifest, *, recipe_has_prompt: bool) -> Iterator[Row | BadRow]:
    """The rows of the manifest at `path` one by one, none of them kept.

    Args:
        path: See `scan_manifest`.
        manifest: Gets everything but the rows; whole when the last row has come.
        recipe_has_prompt: See `scan_manifest`.
    """
    first_line: dict[str, int] = {}
    first_in_set: dict[tuple[str, int], int] = {}
    for item in _open(path):
        if isinstance(item, Fault):
            manifest.faults.append(item)
            continue
        if not item.values.keys() <= manifest.columns.keys():
            for name in item.values:
                manifest.columns.setdefault(name, _kind_of(path, name))
        row = to_row(item, manifest.count, recipe_has_prompt=recipe_has_prompt)
        if isinstance(row, Row) and row.place_in_set is not None:
            row = _in_set(row, row.place_in_set, first_in_set)
        manifest.count += 1
        if isinstance(row, BadRow):
            manifest.faults.append(row.fault)
        if (earlier := first_line.setdefault(row.id, item.line)) != item.line:
            message = f"line {item.line}: id {row.id!r} stands already at line {earlier}. Ids must differ."
            manifest.faults.append(Fault("duplicate_id", message, item.line, row.id))
        yield row
    if path.suffix.lower() in DELIMITERS and not manifest.refused:
        for name in header_of(path, DELIMITERS[path.suffix.lower()]):
            manifest.columns.setdefault(name, "text")
    _check_columns(manifest, recipe_has_prompt)


def _in_set(row: Row, place: tuple[str, int], first_line: dict[tuple[str, int], int]) -> Row | BadRow:
    """The row, or why it cannot run: its place in its set is taken."""
    earlier = first_line.setdefault(place, row.line)
    if earlier == row.line:
        return row
    name, index = place
    message = f"line {row.line}, row {row.id!r}: place {index} of set {name!r} stands already at line {earlier}."
    return BadRow(row.index, row.id, Fault("bad_value", message, row.line, row.id), row.values)


def _open(path: Path) -> Iterator[Record | Fault]:
    suffix = path.suffix.lower()
    if path.is_dir():
        return read_folder(path)
    if not path.exists():
        return iter([Fault("not_found", "no such file or folder. Paths in a recipe start from the recipe's folder.")])
    if suffix in JSON_SUFFIXES:
        return read_jsonl(path)
    if suffix in DELIMITERS:
        return read_delimited(path, DELIMITERS[suffix])
    if suffix == ".parquet":
        from vidpipe.manifest.parquet import read_parquet

        return read_parquet(path)
    if suffix in VIDEO_SUFFIXES:
        return read_single(path)
    return iter([Fault("syntax", f"ending {suffix or '(none)'!r} is not one of {KNOWN}. Rename the file.")])


def _kind_of(path: Path, name: str) -> ColumnKind:
    return "text" if name in TEXT_COLUMNS or path.suffix.lower() in DELIMITERS else "json"


def _check_columns(manifest: Manifest, recipe_has_prompt: bool) -> None:
    """Name a column that no row has once, instead of failing every row for it."""
    if manifest.refused or not (manifest.columns or manifest.count):
        return
    wanted: list[tuple[str, Any]] = [("id", {"id"}), ("video", MEDIA_COLUMNS)]
    if not recipe_has_prompt:
        wanted.append(("question", {"question", "prompt", "messages"}))
    for name, any_of in wanted:
        if not any_of & manifest.columns.keys():
            manifest.faults = [fault for fault in manifest.faults if fault.kind != "missing_field"]
            message = f"column {name!r} is missing; found: {', '.join(map(repr, manifest.columns))}."
            manifest.faults.append(Fault("missing_column", message, line=1))
