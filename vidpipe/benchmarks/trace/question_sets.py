"""Grounding, event times, TempCompass and smaller sets over golden vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from vidpipe.benchmarks import jumpscore as jumps
from vidpipe.benchmarks import tempcompass as compass
from vidpipe.benchmarks.activitynetqa import exact_text, judge_reply
from vidpipe.benchmarks.candidates import first_candidate, last_candidate
from vidpipe.benchmarks.grounding import charades_spans, eval_tvg_spans, overlap, timelens_spans
from vidpipe.benchmarks.profile import Question
from vidpipe.benchmarks.trace.wire import guarded
from vidpipe.benchmarks.videomme_v2 import group_score

SPANS = {"lmms_eval_main": charades_spans, "lmms_eval_eval_tvg": eval_tvg_spans, "timelens": timelens_spans}
NEXTQA_TYPES = {"Why": "CW", "How": "CH", "Bef&Aft": "TN", "When": "TC", "Cnt": "DC", "Loc": "DL", "Other": "DO"}


def charades_iou(given: dict[str, Any]) -> dict[str, Any]:
    """`charades_iou.json`; a reply without a span has no measured overlap, but a plain 0."""
    outputs = {}
    for name, read in SPANS.items():
        spans = [list(span) for span in read(given["prediction"])]
        iou = {"value": overlap(given["prediction"], given["ground_truth"], read).score} if spans else 0.0
        outputs[name] = {"span": spans[0] if spans else None, "all": spans, "iou": iou}
    return outputs


def charades_aggregate(given: dict[str, Any]) -> dict[str, Any]:
    """`charades_aggregate.json`: rows of one video, caption and span are one, and the last reply counts."""
    last = {(row["video"], row["caption"], tuple(row["timestamp"])): row for row in given["rows"]}
    outputs = {}
    for name, read in (("charades_lmms_eval_main", charades_spans), ("timelens", timelens_spans)):
        overlaps = [overlap(row["prediction"], row["timestamp"], read).score for row in last.values()]
        share = 100 / len(overlaps) if overlaps else 0.0
        metrics: dict[str, float] = {f"IOU@{n}": share * sum(one >= n / 10 for one in overlaps) for n in (3, 5, 7)}
        outputs[name] = {"metrics": {**metrics, "mIOU": share * sum(overlaps)}, "n_scored": len(overlaps)}
    return outputs


def jumpscore(given: dict[str, Any]) -> dict[str, Any]:
    """`jumpscore.json`."""
    found = jumps.precisions(given["prediction"], given["ground_truth"])
    return {
        "pred_starts": jumps.reply_times(given["prediction"]),
        "map": jumps.mean_precision(found),
        "ap_per_tolerance": {str(tolerance_s): value for tolerance_s, value in found.items()},
    }


def _verdict(right: bool | None) -> int | str:
    return "fail" if right is None else int(right)


def tempcompass(given: dict[str, Any]) -> dict[str, Any]:
    """`tempcompass.json`, by its `task`."""
    task = given["task"]
    if task == "multi-choice":
        return {"rule": _verdict(compass.choice(given["prediction"], given["answer"]))}
    if task == "yes_no":
        word = compass.yes_no(given["prediction"])
        return {"extracted": word, "rule": _verdict(None if word is None else word == given["answer"])}
    if task == "caption_matching":
        texts = given["prediction"], given["question"], given["answer"]
        return {"rule": guarded("value", lambda: _verdict(compass.matching(*texts)))}
    if task == "captioning_judge_reply":
        return {"rating": compass.judged_caption(given["reply"], given["answer"])}
    rating = guarded("value", lambda: int(compass.judged(given["reply"])))
    return {"rating": {"error": "AssertionError"} if "error" in rating else rating}  # upstream asserts


def _candidate(given: dict[str, Any], read: Callable[[str, Sequence[str]], int | None]) -> dict[str, Any]:
    place = read(given["prediction"], given["options"])
    if place is None:
        return {"extracted": "$random", "index": None, "score": None}
    letter = chr(65 + place)
    return {"extracted": letter, "index": place, "score": float(letter == given["ground_truth"])}


def egoschema(given: dict[str, Any]) -> dict[str, Any]:
    """`egoschema.json`."""
    return {"lmms_eval": _candidate(given, first_candidate)}


def nextqa(given: dict[str, Any]) -> dict[str, Any]:
    """`nextqa_mc.json`."""
    output = _candidate(given, last_candidate)
    del output["index"]
    return {"lmms_eval": output}


def nextqa_aggregate(given: dict[str, Any]) -> dict[str, Any]:
    """`nextqa_aggregate.json`: TP counts as TN; C, T, D and all are means over rows."""
    rights: dict[str, list[bool]] = {}
    for row in given["rows"]:
        kind = "TN" if row["type"] == "TP" else row["type"]
        rights.setdefault(kind, []).append(row["answer"] == row["prediction"])

    def percent(kinds: Sequence[str]) -> float:
        found = [right for kind in kinds for right in rights.get(kind, [])]
        return round(100 * sum(found) / len(found), 2) if found else 0.0

    table = {name: percent([kind]) for name, kind in NEXTQA_TYPES.items()}
    for letter in "CTD":
        table[f"Acc_{letter}"] = percent([kind for kind in NEXTQA_TYPES.values() if kind[0] == letter])
    table["Acc"] = percent(list(NEXTQA_TYPES.values()))
    everything = [right for found in rights.values() for right in found]
    return {"official_percent_2dp": table, "lmms_eval_mean_0_1": sum(everything) / len(everything)}


def activitynetqa(given: dict[str, Any]) -> dict[str, Any]:
    """`activitynetqa.json`, by its `kind`."""
    if given["kind"] == "judge_reply":
        found = judge_reply(given["reply"])
        return {"lmms_eval_parse_score": {"value": None if found is None else list(found)}}
    rows = given["rows"]
    if given["kind"] == "judge_aggregate":
        words = Counter("yes" if "yes" in row["Correctness"].lower() else "no" for row in rows if _decided(row))
        decided = words.total()
        mean = sum(int(row["score"]) for row in rows) / len(rows) if rows else 0
        return {"mean_score": mean, "accuracy_x100": 100 * words["yes"] / decided if decided else 0}
    rights = [exact_text(row["prediction"], Question(row["answer"])).score for row in rows]
    kinds = [str(row["type"]) for row in rows]
    return {
        "correct_by_type": {
            kind: int(sum(right for right, one in zip(rights, kinds, strict=True) if one == kind))
            for kind in dict.fromkeys(kinds)
        },
        "count_by_type": dict(Counter(kinds)),
        "overall": sum(rights) / len(rights),
    }


def _decided(row: dict[str, Any]) -> bool:
    """Upstream looks for `yes` and then `no` anywhere in the verdict, so `unknown` is a `no`."""
    verdict = row["Correctness"].lower()
    return "yes" in verdict or "no" in verdict


def groups(given: dict[str, Any]) -> dict[str, Any]:
    """`videomme_v2_groups.json`; beside a relevance group's score upstream keeps the linear one."""
    scores, kind = given["scores"], given["group_type"]
    output = guarded("score", lambda: group_score(scores, kind, given["group_structure"]))
    return {**output, "linear": 25.0 * sum(scores)} if kind == "relevance" else output
