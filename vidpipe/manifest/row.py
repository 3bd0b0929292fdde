"""What a manifest holds: rows that can run, and faults that say what is wrong where.

What there is of each row is a `msgspec.Struct`: a frozen data class takes ten times as long
to make, and a manifest may have millions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from msgspec import Struct

from vidpipe.errors import ManifestKind, RowKind

FaultKind = ManifestKind | RowKind

REFUSING_KINDS: frozenset[str] = frozenset(get_args(ManifestKind))


@dataclass(frozen=True, slots=True)
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


class Record(Struct, frozen=True):
    """One record of the file as it was read, before anything is checked."""

    line: int
    values: Mapping[str, Any]


class Medium(Struct, frozen=True):
    """One video or image of a row, as the manifest names it."""

    kind: Literal["video", "frames", "image"]
    """A video file, a video as pictures, or a still image."""
    name: str
    """Path or file URI as the manifest writes it; of the folder for pictures, of the first one for a list of them."""
    start_s: float | None = None
    """Only frames from here on are shown, in seconds from the first frame."""
    end_s: float | None = None
    """Only frames before here are shown."""
    pictures: tuple[str, ...] = ()
    """`frames`: their paths, where the manifest lists them."""
    fps: float | None = None
    """`frames`: pictures a second."""
    first_number: int | None = None
    """`frames`: the number in the name of the picture at 0 s; None: the pictures follow each other without gaps."""

    @property
    def modality(self) -> Literal["video", "image"]:
        """As what the model takes it."""
        return "image" if self.kind == "image" else "video"

    def __str__(self) -> str:
        """The name, and the window as a media fragment."""
        if self.start_s is None and self.end_s is None:
            return self.name
        return f"{self.name}#t={self.start_s or 0:g},{'' if self.end_s is None else f'{self.end_s:g}'}"


class Row(Struct, frozen=True):
    """One request to the model."""

    index: int
    """Position among the manifest's rows, from 0."""
    line: int
    id: str
    media: tuple[Medium, ...]
    """Images, then videos, each in the manifest's order; empty for a row of text only."""
    text: str | None = None
    """Finished user text (column `prompt`); None: question, options and the recipe's prompt make it."""
    question: str | None = None
    options: tuple[str, ...] = ()
    option_style: Literal["as_is", "dot", "paren", "auto"] | None = None
    """How options are lettered; None: the recipe's prompt letters them, without one as `auto`."""
    system: str | None = None
    prefill: str | None = None
    """Beginning of the answer, which the model goes on with."""
    messages: tuple[dict[str, Any], ...] | None = None
    """The whole chat in place of question, prompt and system text; parts of type `video` and `image` mark the media."""
    subtitles: tuple[str, ...] = ()
    """Subtitle files as the manifest writes them; their cues go between the frames."""
    subtitle_offset_s: float = 0.0
    """Time of the subtitles' clock at the video's first frame."""
    timestamps_from: Literal["clip", "video"] = "clip"
    """Zero point of the times that the model is told."""
    clip_id: str | None = None
    place_in_set: tuple[str, int] | None = None
    """The set of rows that are scored together, and the row's place in it."""
    sampling: Mapping[str, Any] = {}
    """The row's own `sampling.*` values."""
    generation: Mapping[str, Any] = {}
    """The row's own `generation.*` values."""
    values: Mapping[str, Any] = {}
    """Every column as read, for templates and for the output."""


class BadRow(Struct, frozen=True):
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
