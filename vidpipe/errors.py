"""The exceptions of vidpipe: one for each thing a user can do about it.

Messages say what is wrong, where, what was found, and what to type next. The
`kind` words are stable: they stand in the output column `error_kind` and in
`--json` documents, and scripts match on them.
"""

from __future__ import annotations

from typing import Literal

ManifestKind = Literal[
    "encoding",
    "syntax",
    "duplicate_key",
    "duplicate_id",
    "duplicate_column",
    "missing_column",
    "ragged_row",
    "not_found",
]
"""Faults after which a manifest as a whole cannot be trusted."""
MediaKind = Literal[
    "not_found",
    "not_a_file",
    "empty_file",
    "not_media",
    "not_openable",
    "no_video_stream",
    "unsupported_codec",
    "truncated",
    "corrupt",
    "aspect_ratio",
    "too_large",
    "protocol",
    "outside_root",
    "timeout",
    "bad_window",
]
RowKind = Literal[
    "missing_field",
    "bad_id",
    "bad_window",
    "bad_options",
    "bad_value",
    "special_token",
    "prompt_too_long",
    "no_completion",
]
"""Faults that cost one row."""
EngineKind = Literal["engine_start", "engine_timeout", "engine_dead", "poison_row"]
ClusterKind = Literal["array_shape"]


class VidpipeError(Exception):
    """Base of all errors that vidpipe explains to its user; never raised itself."""


class _KindError(VidpipeError):
    """An error with a stable word for its kind, which it keeps when it crosses a process border."""

    def __reduce__(self) -> tuple[type[_KindError], tuple[str, str]]:
        return type(self), (vars(self)["kind"], str(self))


class RecipeError(VidpipeError):
    """The recipe or the command line is wrong: edit it (exit code 2)."""


class ManifestError(VidpipeError):
    """The manifest cannot be trusted as a whole: mend the file (exit code 2)."""

    def __init__(self, kind: ManifestKind, message: str, *, line: int | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.line = line


class MediaError(_KindError):
    """One clip cannot be shown to a model: its rows get an error record, the run goes on."""

    def __init__(self, kind: MediaKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class RowError(_KindError):
    """One row asks for something impossible: it gets an error record, the run goes on."""

    def __init__(self, kind: RowKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class ClusterError(_KindError):
    """What the scheduler says of this task does not fit: submit otherwise (exit code 2)."""

    def __init__(self, kind: ClusterKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class CapabilityError(VidpipeError):
    """A combination of switches cannot work: choose another (exit code 2)."""


class EngineError(_KindError):
    """The engine cannot start or died: run the same command again (exit code 3)."""

    def __init__(self, kind: EngineKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
