"""What an importer is: how one benchmark's published records become manifest rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Companion:
    """A second published file beside the first, with more about the same records."""

    name: Callable[[Path], str]
    """Its file name, from the first file's path."""
    key: str
    """Column of a record that says which part of the second file is about it."""
    columns: Callable[[Any], Mapping[str, Record]]
    """The file's JSON to key -> columns that its records get."""


@dataclass(frozen=True)
class Importer:
    """How one benchmark is read and asked."""

    name: str
    profile: str
    """Scorer profile of the benchmark."""
    columns: Mapping[str, tuple[type, ...]]
    """Columns that a record may have, and the types of their values; without `None` among these a record must have
    the column. Others are copied to `meta`."""
    row: Callable[[Record, int], dict[str, Any]]
    """A record and its number from 0 in its file to a row; values that are None or empty lists are left out."""
    prompt: str
    """Jinja2 template of the user text, as a recipe takes it."""
    prompt_source: str
    """Whose prompt this is."""
    max_tokens: int
    """Longest answer of the published setting, in tokens."""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    """What the recipe needs for the rows' own `sampling` to hold."""
    from_file_name: str | None = None
    """Column that the published records lack, because the file's name says it."""
    expand: Callable[[Record], Iterable[Record]] = lambda record: (record,)
    """Records inside a published object; a record itself where files are flat."""
    companion: Companion | None = None
    suffixes: tuple[str, ...] = ()
    """Endings that a video may have instead of its row's."""
    subtitles: Callable[[Record], dict[str, Any]] | None = None
    """Columns `subtitles` (a path under the media root) and those that go with it."""
    precut: Mapping[str, str] | None = None
    """Folder of whole videos -> folder of videos that were cut to their records' bounds beforehand."""
    subsets: Mapping[str, Callable[[Record], bool]] = field(default_factory=dict)
    """Published parts of the file by name; raise KeyError where the file does not tell."""

    def make_row(self, record: Record, number: int) -> dict[str, Any]:
        """The row of a record, with what no column is for in `meta`."""
        row = {name: value for name, value in self.row(record, number).items() if value is not None and value != []}
        if rest := {name: value for name, value in record.items() if name not in self.columns}:
            row["meta"] = rest
        return row
