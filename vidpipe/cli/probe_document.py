"""The `probe --json` document; its keys are a contract."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class ProbeError(_Document):
    """Why a file cannot be shown to a model."""

    kind: str
    """Stable word, as in the output column `error_kind`."""
    message: str
    """What is wrong, where, what was found, and what to do."""


class ProbeDocument(_Document):
    """`vidpipe probe --json` for one file; for several files it is a list of these."""

    file: str
    """The name as given; a `file://` URI, percent-encoded, when the name is not UTF-8."""
    outcome: Literal["ok", "ok_partial", "error"]
    """`ok_partial`: some frames are cut off or damaged."""
    error: ProbeError | None = None
    """Set when the outcome is `error`; the fields below are then null."""
    stream_index: int | None = None
    """Which stream of the file is the video."""
    codec: str | None = None
    """FFmpeg's name of the codec."""
    display_wh: tuple[int, int] | None = None
    """Width and height after rotation."""
    frames: int | None = None
    """Frames that the file shows."""
    times_s: list[float] | None = None
    """With --timeline: when each frame is shown, in seconds, as the file states it."""
    duration_s: float | None = None
    """From the start of the first frame to the end of the last one."""
    average_fps: float | None = None
    """Frames a second over the whole file."""
    variable_rate: bool | None = None
    """Whether frames come at varying distances."""
    rotation_deg: int | None = None
    """Clockwise turn that has been taken into account: 0, 90, 180 or 270."""
    mirrored: bool | None = None
    """Whether the picture is mirrored left-right, before the turn."""
    notes: list[str] = []
    """What else is to know, each beginning with a word for its sort."""
