"""What a process's vision encoder did, by the engine's own counters: printed at the end, kept in the run directory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def sentences(reports: list[Mapping[str, Any]]) -> list[str]:
    """For people; nothing for what nobody counted.

    Args:
        reports: Of each engine that this process had; see `vllm_graphs.report`.
    """
    lines = []
    graphs = [report["graphs"] for report in reports if report["graphs"] is not None]
    if graphs:
        hits, misses, captured, used = (
            sum(part[key] for part in graphs) for key in ("hits", "misses", "captured_tokens", "used_tokens")
        )
        padded = f", {1 - used / captured:.1%} of their tokens padding" if captured else ""
        lines.append(
            f"encoder graphs: {hits} of {hits + misses} videos{padded}; "
            f"{sum(part['encoder_s'] for part in graphs):.1f} s of encoding"
        )
    pruned = [report["pruning"] for report in reports if report["pruning"] is not None]
    if pruned:
        kept, all_tokens = (sum(part[key] for part in pruned) for key in ("kept_tokens", "unpruned_tokens"))
        lines.append(f"pruning kept {kept} of {all_tokens} encoded vision tokens")
    return lines
