"""Multiple-choice scorers over golden vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vidpipe.benchmarks.choices import any_case, before_bracket, first_word_in, ranked, standalone_letter
from vidpipe.benchmarks.multiple_choice import (
    MLVU_TASKS,
    longvideobench_letter,
    longvideobench_vlmevalkit,
    ov2_letter,
    right_letter,
    videomme_letter,
    videomme_v2_letter,
)
from vidpipe.benchmarks.profile import Question

Read = Callable[[str], str | None]
MLVU_TEST_TASKS = (*MLVU_TASKS, "needleQA", "sportsQA", "tutorialQA")


def _scored(given: dict[str, Any], read: Read) -> dict[str, Any]:
    letter = read(given["prediction"])
    return {"extracted": letter, "score": float(letter == given["ground_truth"])}


def videomme(given: dict[str, Any]) -> dict[str, Any]:
    """`videomme_extract.json`."""
    return {
        "official": _scored(given, videomme_letter),
        "lmms_eval_main": _scored(given, lambda text: ranked(text, "ABCD")),
        "lmms_eval_ov2_branch": _scored(given, ov2_letter),
        "vlmevalkit_regex": _scored(given, videomme_letter),
    }


def generic(given: dict[str, Any]) -> dict[str, Any]:
    """`mcq_extract_generic.json`."""
    text = given["prediction"]
    sets = {"choices_A_D": "ABCD", "choices_A_E": "ABCDE", "default_A_H": "ABCDEFGH"}
    return {name: ranked(text, letters) for name, letters in sets.items()}


def ov2(given: dict[str, Any]) -> dict[str, Any]:
    """`ov2_mcq_extract.json`."""
    return {
        "lvbench_ov2_branch": _scored(given, ov2_letter),
        "lvbench_lmms_main": _scored(given, lambda text: ranked(text, "ABCD")),
        "videoeval_pro_ov2_branch": {"score": _scored(given, lambda text: any_case(text, "ABCDE"))["score"]},
        "videomme_v2": _scored(given, videomme_v2_letter),
    }


def longvideobench(given: dict[str, Any]) -> dict[str, Any]:
    """`longvideobench.json`; `$random` where upstream draws an option."""
    lmms = _scored(given, longvideobench_letter)
    if lmms["extracted"] is None:
        lmms = {"extracted": "$random", "score": None}
    return {"lmms_eval": lmms, "vlmevalkit_regex": _scored(given, longvideobench_vlmevalkit)}


def mlvu(given: dict[str, Any]) -> dict[str, Any]:
    """`mlvu.json`."""
    return {
        "official": {"score": _scored(given, before_bracket)["score"]},
        "lmms_eval_ov2_branch": _scored(given, lambda text: before_bracket(text.strip())),
        "lmms_eval_main": _scored(given, lambda text: ranked(text, "ABCD")),
    }


def mlvu_aggregate(given: dict[str, Any]) -> dict[str, Any]:
    """`mlvu_aggregate.json`: the mean over a fixed list of tasks, absent ones as 0."""
    dev = given["split"] == "dev"
    tasks = MLVU_TASKS if dev else tuple(task for task in MLVU_TEST_TASKS if task != "needle")
    outputs = {}
    readers: dict[str, Read] = {
        "lmms_eval_main": lambda text: ranked(text, "ABCD"),
        "lmms_eval_ov2_branch": lambda text: before_bracket(text.strip()),
    }
    for name, read in readers.items():
        scores = [float(read(row["prediction"]) == row["answer"]) for row in given["rows"]]
        by_task = {
            task: [s for s, r in zip(scores, given["rows"], strict=True) if r["task_type"] == task] for task in tasks
        }
        means = [100 * sum(values) / len(values) if values else 0.0 for values in by_task.values()]
        outputs[name] = {"overall_x100": sum(means) / len(tasks), "per_row": scores}
    return outputs


def mvbench(given: dict[str, Any]) -> dict[str, Any]:
    """`mvbench.json`."""
    text, letter = given["prediction"], given["answer_letter"]
    option = f"({letter}) {given['answer']}"
    return {
        "lmms_eval": {"score": int(standalone_letter(text) == letter)},
        "vlmevalkit_check_ans": {"value": first_word_in(text.strip(), option)},
        "official_check_ans": {"value": first_word_in(text, option)},
        "official_with_paren_prefix": {"value": first_word_in(f"({text.strip().split(chr(10))[0]}", option)},
    }


def mvbench_aggregate(given: dict[str, Any]) -> dict[str, Any]:
    """`mvbench_aggregate.json`: empty replies are left out of the average."""
    scores = [
        int(standalone_letter(row["prediction"]) == right_letter(Question(row["answer"], "", tuple(row["candidates"]))))
        for row in given["rows"]
    ]
    kept = [score for score, row in zip(scores, given["rows"], strict=True) if row["prediction"] != ""]
    mean = 100 * sum(kept) / len(kept) if kept else 0
    return {"lmms_eval_x100": mean, "per_row": scores, "answered": len(kept)}


def longvideobench_aggregate(given: dict[str, Any]) -> dict[str, Any]:
    """`longvideobench_aggregate.json`: every row stands in two groupings, so counts are doubled."""
    subsets: dict[str, list[bool]] = {}
    for row in given["rows"]:
        right = longvideobench_letter(row["prediction"]) == right_letter(Question(row["correct_choice"]))
        for name in (row["duration_group"], row["question_category"]):
            subsets.setdefault(str(name), []).append(right)
    printed = {
        name: {"num": len(rights), "acc": round(sum(rights) / len(rights), 5)} for name, rights in subsets.items()
    }
    total = sum(len(rights) for rights in subsets.values())
    overall = round(sum(sum(rights) for rights in subsets.values()) / total, 5)
    return {"overall_0_1": overall, "printed": {**printed, "Overall": {"num": total, "acc": overall}}}


VIDEOMME_PARTS = {
    "video Type": ("duration", "short, medium, long"),
    "Categories": (
        "domain",
        "Knowledge, Film & Television, Sports Competition, Artistic Performance, Life Record, Multilingual",
    ),
    "Video Sub Categories": (
        "sub_category",
        "Humanity & History, Literature & Art, Biology & Medicine, Finance & Commerce, Astronomy, Geography, Law, "
        "Life Tip, Technology, Animation, Movie & TV Show, Documentary, News Report, Esports, Basketball, Football, "
        "Athletics, Other Sports, Stage Play, Magic Show, Variety Show, Acrobatics, Handicraft, Food, Fashion, "
        "Daily Life, Travel, Pet & Animal, Exercise, Multilingual",
    ),
    "Task Categories": (
        "task_type",
        "Temporal Perception, Spatial Perception, Attribute Perception, Action Recognition, Object Recognition, "
        "OCR Problems, Counting Problem, Temporal Reasoning, Spatial Reasoning, Action Reasoning, Object Reasoning, "
        "Information Synopsis",
    ),
}
"""Line of lmms-eval's report -> column, and its values in the report's order."""


def videomme_aggregate(given: dict[str, Any]) -> dict[str, Any]:
    """`videomme_aggregate.json`: what each harness prints, without lines at 0 %."""
    rows = given["rows"]
    return {
        "official_percent_1dp": _videomme_official(rows),
        "lmms_eval_main": _videomme_report(rows, lambda text: ranked(text, "ABCD")),
        "lmms_eval_ov2_branch": _videomme_report(rows, ov2_letter),
    }


def _videomme_report(rows: list[dict[str, Any]], read: Read) -> dict[str, Any]:
    """lmms-eval: unread replies are wrong; a row counts in a line whose value stands anywhere in its categories."""
    scores = [float(read(row["prediction"]) == row["answer"]) for row in rows]
    keys = ["_".join(row[column] for column, _ in VIDEOMME_PARTS.values()) for row in rows]
    lines = []
    for part, (_, values) in VIDEOMME_PARTS.items():
        for value in values.split(", "):
            found = [score for key, score in zip(keys, scores, strict=True) if value in key]
            lines.append((f"Evaluation on {part}: {value}", found))
    lines.append(("Overall Performance", scores))
    shown = [(name, 100 * sum(found) / len(found)) for name, found in lines if any(found)]
    overall = 100 * sum(scores) / len(scores) if scores else 0
    return {"per_row": scores, "overall_x100": overall, "log": [f"{name}: {value: .1f}%" for name, value in shown]}


def _videomme_official(rows: list[dict[str, Any]]) -> dict[str, float]:
    """The benchmark's scorer: unread replies are left out."""
    durations = ("short", "medium", "long")
    read: dict[str, list[bool]] = {f"{part} | Overall": [] for part in ("the entire dataset", *map(_part, durations))}
    for row in rows:
        letter = videomme_letter(row["prediction"])
        if letter is None:
            continue
        for part in ("the entire dataset", _part(row["duration"])):
            for name in (row["domain"], row["sub_category"], row["task_type"], "Overall"):
                read.setdefault(f"{part} | {name}", []).append(letter == row["answer"])
    percents = {name: round(100 * sum(rights) / len(rights), 1) if rights else 0.0 for name, rights in read.items()}
    return {name: value for name, value in percents.items() if value or name.endswith("| Overall")}


def _part(duration: str) -> str:
    return f"video Type: {duration}"
