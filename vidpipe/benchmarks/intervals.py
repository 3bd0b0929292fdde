"""Overlap of spans of time."""

from __future__ import annotations

from collections.abc import Sequence


def interval_iou(a: Sequence[float], b: Sequence[float]) -> float:
    """Intersection over union of [start, end] in seconds; 0 for a span that ends before it starts.

    Equal to EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/{charades_sta,timelens}/utils.py, iou.
    """
    overlap_s = max(min(a[1], b[1]) - max(a[0], b[0]), 0)
    extent_s = max(a[1], b[1]) - min(a[0], b[0])
    return overlap_s / extent_s if extent_s > 0 else 0.0
