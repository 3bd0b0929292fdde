"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "error"]


@dataclass(frozen=True)
class Finding:
    """One line of `vidpipe doctor`."""

    about: str
    """What was looked at."""
    level: Level
    """`error`: a run cannot work; `warning`: it may, or will be slow."""
    found: str
    """What is there, with versions and sizes."""
    advice: str | None = None
    """What to type or change; None where all is well."""
