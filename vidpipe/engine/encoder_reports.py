"""What the vision encoders of several engines did, as one report. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

SAME_IN_ALL = ("graphs", "max_items", "eager_tokens")
OF_THE_FIRST = ("timings",)
"""Each engine measures for itself; that of one stands for all."""


def together(reports: Sequence[dict[str, Any] | None]) -> dict[str, Any] | None:
    """Sum the counters of engines that were started alike; see `Engine.encoder_report`."""
    counted = [report for report in reports if report is not None]
    if not counted:
        return None
    return {part: _sum([report[part] for report in counted]) for part in counted[0]}


def _sum(parts: Sequence[Any]) -> Any:
    if any(part is None for part in parts):
        return None
    found = {
        key: value if key in SAME_IN_ALL + OF_THE_FIRST else _add([part[key] for part in parts])
        for key, value in parts[0].items()
    }
    if "padded_share" in found:
        captured = found["captured_tokens"]
        found["padded_share"] = 1 - found["used_tokens"] / captured if captured else None
    return found


def _add(values: Sequence[Any]) -> Any:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
