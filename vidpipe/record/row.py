"""One output row: what was asked, what the model saw, what it said, and how it went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Status = Literal["ok", "length", "media_error", "row_error", "engine_error"]
ParseState = Literal["ok", "not_json", "mismatch"]


@dataclass(frozen=True)
class MediaRecord:
    """How decoding went."""

    outcome: Literal["ok", "ok_partial", "error"]
    frames_missing: int = 0
    """Frames that the file lacks, and asked ones that do not decode."""
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class FramesRecord:
    """The frames that the model saw, one after the other (a frame shown twice stands twice)."""

    count: int
    indices: list[int]
    """Frame numbers in the file, from 0."""
    times_s: list[float]
    """Presentation times in the file."""
    size_wh: list[int]
    """Width and height before the model, after its resize rule, in pixels."""
    sha: str
    """SHA-256 over the decoded RGB bytes of all frames."""


@dataclass(frozen=True)
class ImageRecord:
    """A still image that the model saw."""

    size_wh: list[int]
    """Width and height before the model, after its resize rule, in pixels."""
    sha: str
    """SHA-256 over the decoded RGB bytes."""


@dataclass(frozen=True)
class VisionTokens:
    """Vision tokens by effect, not by switch."""

    asked: int
    """What the family's rule gives for all media of the row, before pruning."""
    kept: int | None
    """What stood in the prompt; None if the engine cannot tell."""


@dataclass(frozen=True)
class ReplyRecord:
    """What is noticed about a reply; its text stays as it is."""

    flags: list[str] = field(default_factory=list)
    """Of `empty`, `control_characters`, `surrogate` (half a pair, recorded as U+FFFD) and `repetition`."""
    parse: ParseState | None = None
    """Whether it has the form that `generation` asks for; None if any text will do."""


@dataclass(frozen=True)
class TryRecord:
    """A try at a row whose reply is not the row's."""

    attempt: int
    status: Status
    error_kind: str | None
    error: str | None
    text: str | None
    finish_reason: str | None
    reply: ReplyRecord | None
    tokens_out: int | None
    resolved_sha: str | None
    """`resolved.sha` of this try."""


@dataclass(frozen=True)
class ResolvedRecord:
    """Which settings made the row; the settings themselves stand in the part's metadata under `sha`."""

    sha: str
    model: str
    engine: str
    vidpipe: str


@dataclass(frozen=True)
class Seconds:
    """Where the time went. Decoding and preparing are shared by all rows of a clip and stand in each."""

    decode: float | None = None
    prepare: float | None = None
    queue: float | None = None
    engine: float | None = None


@dataclass(frozen=True)
class OutputRow:
    """One row of the result, in the order of the columns."""

    id: str
    clip_id: str | None
    status: Status
    error_kind: str | None = None
    error: str | None = None
    media: MediaRecord | None = None
    prompt_sha: str | None = None
    text: str | None = None
    finish_reason: str | None = None
    reply: ReplyRecord | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    frames: FramesRecord | None = None
    more_frames: list[FramesRecord] = field(default_factory=list)
    images: list[ImageRecord] = field(default_factory=list)
    vision_tokens: VisionTokens | None = None
    resolved: ResolvedRecord | None = None
    seconds: Seconds = field(default_factory=Seconds)
    attempt: int = 1
    other_tries: list[TryRecord] = field(default_factory=list)
    """Where the row was asked more than once: the other tries, in order."""
    manifest: Mapping[str, Any] = field(default_factory=dict)
    """The manifest's own columns, as read."""


def standing(tries: Sequence[OutputRow]) -> OutputRow:
    """The one of a row's tries that counts, with the others in its record: the last one with a reply, else the last."""
    chosen = next((row for row in reversed(tries) if row.text is not None), tries[-1])
    others = [
        TryRecord(
            row.attempt,
            row.status,
            row.error_kind,
            row.error,
            row.text,
            row.finish_reason,
            row.reply,
            row.tokens_out,
            row.resolved.sha if row.resolved else None,
        )
        for row in tries
        if row is not chosen
    ]
    return replace(chosen, other_tries=others)
