"""CSV and TSV: every cell stays the text that it is.

Spreadsheet readers turn "N/A" into null, "1.10" into 1.1 and "2024-01-02" into a
date. Here only columns that are lists, maps or settings by definition are read as
JSON; an empty cell is null; the two characters `""` in a cell are an empty text.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vidpipe.manifest.jsonl import BOM, decode_strictly, other_form
from vidpipe.manifest.row import Fault, Record

JSON_COLUMNS = frozenset(
    {"options", "answers", "categories", "meta", "sampling", "generation", "images", "clips", "messages"}
)
TEXT_OR_LIST_COLUMNS = frozenset({"video", "frames", "subtitles"})
MAX_CELL_CHARS = 2**31 - 1


_EXPLAINED = {
    "unexpected end of data": "a quote that was opened is not closed before the end of the file.",
    "new-line character seen": "lines end in a carriage return alone. Save the file with line feeds (\\n).",
    "expected after": "text goes on behind a closing quote. Double the quotes inside of a quoted cell.",
}
"""Words of the csv module's errors, and what they mean."""


class _EncodingError(ValueError):
    def __init__(self, line: int, byte: int, value: int, other_form: str | None) -> None:
        told = other_form or f"byte {byte} is not UTF-8 (0x{value:02x}). Save the file as UTF-8."
        super().__init__(f"line {line}: {told}")
        self.line = line


def read_delimited(path: Path, delimiter: str) -> Iterator[Record | Fault]:
    """Records of a CSV (`,`) or TSV (tab) file; faults of the file end the reading."""
    csv.field_size_limit(MAX_CELL_CHARS)
    with path.open("rb") as file:
        reader = csv.reader(_lines(file), delimiter=delimiter, strict=True)
        try:
            header = next(reader, None)
            if header is None:
                yield Fault(
                    "missing_column",
                    "the file is empty: a header line with id,video,question is missing.",
                    line=1,
                )
                return
            twice = sorted({name for name in header if header.count(name) > 1})
            if twice:
                yield Fault("duplicate_column", f"line 1: column {twice[0]!r} stands twice. Rename one.", line=1)
                return
            yield from _rows(reader, header)
        except _EncodingError as error:
            yield Fault("encoding", str(error), line=error.line)
        except csv.Error as error:
            told = next((more for words, more in _EXPLAINED.items() if words in str(error)), f"{error}.")
            yield Fault("syntax", f"line {reader.line_num}: {told}", line=reader.line_num)


def header_of(path: Path, delimiter: str) -> list[str]:
    """Column names of a file whose reading gave no fault."""
    with path.open("rb") as file:
        return next(csv.reader(_lines(file), delimiter=delimiter, strict=True), [])


def _lines(file: Any) -> Iterator[str]:
    for number, raw in enumerate(file, start=1):
        line = raw.removeprefix(BOM) if number == 1 else raw
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            other = other_form(line) if number == 1 else None
            raise _EncodingError(number, error.start + 1, line[error.start], other) from None


def _rows(reader: Any, header: list[str]) -> Iterator[Record | Fault]:
    first_line = reader.line_num + 1
    for cells in reader:
        line, first_line = first_line, reader.line_num + 1
        if not cells or (len(cells) == 1 and not cells[0].strip() and len(header) > 1):
            continue  # a blank line
        if len(cells) != len(header):
            yield Fault(
                "ragged_row",
                f"line {line}: {len(cells)} cells, the header has {len(header)}. Quote cells with commas.",
                line=line,
            )
            continue
        yield _record(line, header, cells)


def _record(line: int, header: list[str], cells: list[str]) -> Record | Fault:
    values: dict[str, Any] = {}
    for name, cell in zip(header, cells, strict=True):
        try:
            values[name] = _cell(name, cell)
        except (ValueError, RecursionError):
            found = f"found {cell[:80]!r}. Texts in JSON stand in double quotes, which CSV doubles."
            return Fault("syntax", f"line {line}: column {name!r} must hold JSON, {found}", line=line)
    return Record(line, values)


def _cell(name: str, cell: str) -> Any:
    if cell == "":
        return None
    if name in JSON_COLUMNS or (name in TEXT_OR_LIST_COLUMNS and cell.startswith("[")):
        return decode_strictly(cell)
    if name.startswith(("sampling.", "generation.")):
        try:
            return decode_strictly(cell)
        except ValueError:
            return cell
    return "" if cell == '""' else cell
