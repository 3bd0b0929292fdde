"""What a manifest holds: rows that can run, and faults that say what is wrong where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from vidpipe.errors import ManifestKind, RowKind

FaultKind = ManifestKind | RowKind

REFUSING_KINDS: frozenset[str] = frozenset(get_args(ManifestKind))


@dataclass(frozen=True)
class Fault:
    """Something wrong in a manifest."""

    kind: FaultKind
    message: str
    line: int | None = None
    """Line of the file (Parquet: row), counted from 1."""
    id: str | None = None

    @property
    def refuses_manifest(self) -> bool:
        """Whether the whole file is refused, not only this row."""
        return self.kind in REFUSING_KINDS


@dataclass(frozen=True)
class Record:
    """One record of the file as it was read, before anything is checked."""

    line: int
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """One request to the model."""

    index: int
    """Position among the manifest's rows, from 0."""
    line: int
    id: str
    video: str
    """Path or file URI as the manifest writes it."""
    text: str | None = None
    """Finished user text (column `prompt`); None: question, options and the recipe's prompt make it."""
    question: str | None = None
    options: tuple[str, ...] = ()
    system: str | None = None
    clip_start_s: float | None = None
    clip_end_s: float | None = None
    timestamps_from: Literal["clip", "video"] = "clip"
    """Zero point of the times that the model is told."""
    clip_id: str | None = None
    sampling: Mapping[str, Any] = field(default_factory=dict)
    """The row's own `sampling.*` values."""
    generation: Mapping[str, Any] = field(default_factory=dict)
    """The row's own `generation.*` values."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Every column as read, for templates and for the output."""


@dataclass(frozen=True)
class BadRow:
    """A row that cannot run; it still gets its row in the output."""

    index: int
    id: str
    fault: Fault
    values: Mapping[str, Any]


ColumnKind = Literal["text", "json"]

TEXT_COLUMNS: frozenset[str] = frozenset(
    {
        "id", "video", "question", "prompt", "system", "question_type", "clip_id", "template", "scorer",
        "prefill", "option_style", "answer_type", "set_id", "timestamps_from", "subtitles",
    }
)  # fmt: skip
"""Columns that hold text by definition; other columns of JSON and Parquet manifests are open-typed."""
