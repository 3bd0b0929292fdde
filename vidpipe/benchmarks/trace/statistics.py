"""Statistics, tag stripping and interval overlap over golden vectors."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from vidpipe.benchmarks import repeats
from vidpipe.benchmarks.intervals import interval_iou
from vidpipe.benchmarks.reasoning import strip_reasoning
from vidpipe.benchmarks.trace.wire import guarded
from vidpipe.benchmarks.uncertainty import clustered_stderr, mean_stderr, paired_t


def uncertainty(given: dict[str, Any]) -> dict[str, Any]:
    """`uncertainty.json`, by its `kind`."""
    kind = given["kind"]
    if kind == "stderr":
        scores, clusters = given["scores"], given["clusters"]
        return {
            "mean": sum(scores) / len(scores),
            "stderr_clt": guarded("value", lambda: mean_stderr(scores)),
            "stderr_clustered": guarded("value", lambda: clustered_stderr(scores, clusters)),
        }
    if kind == "paired":
        return guarded("value", lambda: asdict(paired_t(given["current"], given["baseline"])))
    if kind == "power":
        return guarded("value", lambda: repeats.power_analysis(**given["args"]))
    if kind == "pooled":
        return guarded("value", lambda: repeats.pooled_stderr(given["stderrs"], given["sizes"]))
    samples = given["sample_scores"]
    return {
        "EA": repeats.expected_accuracy(samples),
        "CA": repeats.consensus_accuracy(samples),
        "IV": repeats.internal_variance(samples),
        "CR": repeats.consistency_rate(samples),
    }


def reasoning(given: dict[str, Any]) -> dict[str, Any]:
    """`strip_reasoning.json`."""
    return {"value": strip_reasoning(given["text"], given["tags"])}


def iou(given: dict[str, Any]) -> dict[str, Any]:
    """`interval_iou.json`: upstream's older copy, eval_tvg, divides by an extent of 0."""
    a, b = given["a"], given["b"]
    value = {"value": interval_iou(a, b)}
    older = {"error": "ZeroDivisionError"} if max(a[1], b[1]) == min(a[0], b[0]) else value
    return {"lmms_eval_main": value, "lmms_eval_eval_tvg": older, "timelens": value}
