"""VSI-Bench's scorers over golden vectors, upstream's exceptions included."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from vidpipe.benchmarks.mra import official_mra, vlmevalkit_mra, zero_exact_mra
from vidpipe.benchmarks.numbers import first_number_or_word, first_number_or_zero, last_number
from vidpipe.benchmarks.profile import Question
from vidpipe.benchmarks.revsi import LMMS_MAIN as REVSI
from vidpipe.benchmarks.revsi import number as revsi_number
from vidpipe.benchmarks.trace.wire import from_wire, guarded, to_wire
from vidpipe.benchmarks.vsi import (
    DIRECTION_TYPES,
    GROUPS,
    NUMBER_TYPES,
    number_score,
    official_choice,
    official_number,
    vlmevalkit_choice,
)

Read = Callable[[str], float | None]
Measure = Callable[[float, float], float]
NUMBERS: dict[str, tuple[Read, Measure]] = {
    "official": (official_number, official_mra),
    "lmms_eval_main": (first_number_or_word, official_mra),
    "vlmevalkit": (last_number, vlmevalkit_mra),
}
CHOICES = {"official": official_choice, "lmms_eval_main": official_choice, "vlmevalkit": vlmevalkit_choice}


def mra(given: dict[str, Any]) -> dict[str, Any]:
    """`vsi_mra.json`."""
    text, answer = given["prediction"], given["ground_truth"]
    outputs = {
        name: {
            "extracted": to_wire(read(text)),
            **guarded("score", lambda read=read, measure=measure: number_score(text, answer, read, measure).score),  # type: ignore[misc]
        }
        for name, (read, measure) in NUMBERS.items()
    }
    return {**outputs, "revsi": {"score": revsi_number(text, answer).score}, "vsisuper_count": _vsisuper(text, answer)}


def _vsisuper(text: str, answer: str) -> dict[str, Any]:
    try:
        target = float(answer or 0)
    except ValueError:
        return {"error": "ValueError"}
    value = first_number_or_zero(text)
    return {"extracted": value, "score": zero_exact_mra(value, target)}


def revsi_aggregate(given: dict[str, Any]) -> dict[str, Any]:
    """`revsi_aggregate.json`: composites average the types that are there."""
    scores: dict[str, list[float]] = {}
    per_row = []
    for row in given["rows"]:
        question = Question(row["ground_truth"], row["question_type"])
        per_row.append(REVSI.rule(row["prediction"], question).score)
        scores.setdefault(row["question_type"], []).append(per_row[-1])
    means = {kind: _mean(values) for kind, values in scores.items()}
    groups = {
        f"{name}_acc": _mean([means[kind] for kind in kinds if kind in means])
        for name, kinds in REVSI.groups.items()
        if any(kind in means for kind in kinds)
    }
    return {"per_row": per_row, "summary_0_1": {"value": {**groups, "overall_acc": _mean(list(groups.values()))}}}


def formula(given: dict[str, Any]) -> dict[str, Any]:
    """`vsi_mra_formula.json`."""
    numbers = float(from_wire(given["pred"])), float(from_wire(given["target"]))
    official = guarded("value", lambda: official_mra(*numbers))
    return {
        "official": official,
        "lmms_eval_main": official,
        "vlmevalkit": guarded("value", lambda: vlmevalkit_mra(*numbers)),
        "vsisuper_count": guarded("value", lambda: zero_exact_mra(*numbers)),
    }


def choice(given: dict[str, Any]) -> dict[str, Any]:
    """`vsi_mca.json`."""
    outputs = {}
    for name in ("official", "vlmevalkit"):
        scored = CHOICES[name](given["prediction"], given["ground_truth"])
        outputs[name] = {"extracted": scored.extracted, "score": scored.score}
    return outputs


def aggregate(given: dict[str, Any]) -> dict[str, Any]:
    """`vsi_aggregate.json`: whole tables, as each harness prints them."""
    outputs = {}
    for name, (read, measure) in NUMBERS.items():
        scores = [
            number_score(row["prediction"], row["ground_truth"], read, measure).score
            if row["question_type"] in NUMBER_TYPES
            else CHOICES[name](row["prediction"], row["ground_truth"]).score
            for row in given["rows"]
        ]
        types = [row["question_type"] for row in given["rows"]]
        means = {kind: _mean([s for s, t in zip(scores, types, strict=True) if t == kind]) for kind in set(types)}
        outputs[name] = {"per_row": scores, **SUMMARIES[name](means)}
    return outputs


def _mean(scores: list[float]) -> float:
    return sum(scores) / len(scores)


def _column(kind: str) -> str:
    return f"{kind}_{'MRA:.5:.95:.05' if kind in NUMBER_TYPES else 'accuracy'}"


def _merged(means: Mapping[str, float], needed: str | None) -> dict[str, float]:
    """Scores by upstream's column names, levels of direction as one.

    Args:
        means: Score of each question type that is there.
        needed: A level whose presence makes upstream merge; None: it merges if all are there.

    Raises:
        KeyError: upstream merges, and a level is missing.
    """
    merge = needed in means if needed else all(level in means for level in DIRECTION_TYPES)
    rest = {_column(kind): means[kind] for kind in means if not (merge and kind in DIRECTION_TYPES)}
    if merge:
        rest["object_rel_direction_accuracy"] = sum(means[level] for level in DIRECTION_TYPES) / 3
    return {"overall": sum(rest.values()) / len(rest), **rest}


def _percent(merged: Mapping[str, float]) -> dict[str, float]:
    columns = ["overall", *map(_column, GROUPS)]
    return {column: 100 * merged[column] for column in columns if column in merged}


def _official(means: Mapping[str, float]) -> dict[str, Any]:
    output = guarded("summary_x100", lambda: _percent(_merged(means, DIRECTION_TYPES[0])))
    if shown := output.get("summary_x100"):
        output["tabulated_keys"] = ", ".join(shown)
        output["tabulated_results"] = ", ".join(f"{value:.3f}" for value in shown.values())
    return output


def _lmms_main(means: Mapping[str, float]) -> dict[str, Any]:
    def rounded() -> dict[str, float]:
        for level in DIRECTION_TYPES:
            means[level]  # upstream takes all three out of its table
        return {column: round(value, 6) for column, value in _merged(means, None).items()}

    return guarded("summary_0_1", rounded)


def _vlmevalkit(means: Mapping[str, float]) -> dict[str, Any]:
    return {"summary_x100": _percent(_merged(means, None))}


SUMMARIES: dict[str, Callable[[Mapping[str, float]], dict[str, Any]]] = {
    "official": _official,
    "lmms_eval_main": _lmms_main,
    "vlmevalkit": _vlmevalkit,
}
