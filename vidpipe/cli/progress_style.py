"""How a run may be shown while it goes on."""

from __future__ import annotations

from enum import StrEnum


class ProgressStyle(StrEnum):
    """Values of `vidpipe run --progress`."""

    AUTO = "auto"
    RICH = "rich"
    PLAIN = "plain"
    JSONL = "jsonl"
    NONE = "none"
