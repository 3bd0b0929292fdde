"""JumpScore (`lmms-lab-encoder/JumpScore`): at which times does it happen? Mean average precision of event times.

EvolvingLMMs-Lab/lmms-eval @3997a60, lmms_eval/tasks/jumpscore/utils.py.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

from vidpipe.benchmarks.profile import Profile, Question, Scored

TOLERANCES_S = (0.1, 0.2, 0.3)
_WITH_UNIT = re.compile(r"(?<!\d)(\d+(?:\.\d+)?)\s*s\b")
_LIST = re.compile(r"```json\s*(\[.*?\])\s*```|(\[.*?\])", re.DOTALL)
_NUMBER = re.compile(r"\b\d+(?:\.\d+)?\b")


def _times(entries: Any) -> list[float]:
    """Numbers of a list, and its texts such as `1.20s`; others are passed over, whole numbers beyond floats too."""
    found = []
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, str | int | float):
            with suppress(ValueError, OverflowError):
                found.append(float(entry.replace("s", "").strip() if isinstance(entry, str) else entry))
    return sorted(found)


def reply_times(text: str) -> list[float]:
    """Times in seconds, in order: those with a unit, else the longest list's, else every number."""
    text = text.strip().lower()
    if with_unit := _WITH_UNIT.findall(text):
        return sorted(map(float, with_unit))
    lists = [fenced or plain for fenced, plain in _LIST.findall(text)]
    if lists:
        longest = re.sub(r",\s*\]", "]", max(lists, key=len))
        try:
            found = _times(json.loads(longest))
        except (ValueError, RecursionError):  # a reply may repeat one bracket thousands of times
            found = sorted(map(float, _NUMBER.findall(longest)))
        if found:
            return found
    return sorted(map(float, _NUMBER.findall(text)))


def true_times(answer: Any) -> list[float] | None:
    """Times of the expected answer, a list or one as JSON text; None where it is neither."""
    if isinstance(answer, str):
        found = _LIST.search(answer)
        try:
            answer = json.loads(next(filter(None, found.groups())) if found else answer)
        except ValueError:
            return None
    return _times(answer) if isinstance(answer, list) else None


def average_precision(predicted: list[float], expected: list[float], tolerance_s: float) -> float:
    """Area under precision over recall, predictions taken in order of time, each to its nearest free event."""
    free = list(expected)
    hits, area = 0, 0.0
    for count, time_s in enumerate(predicted, 1):
        near = [(abs(time_s - event_s), place) for place, event_s in enumerate(free)]
        near = [one for one in near if one[0] <= tolerance_s]
        if near:
            free.pop(min(near)[1])
            hits += 1
            area += hits / count / len(expected)
    return area


def precisions(text: str, answer: Any) -> dict[float, float]:
    """Average precision at each tolerance; empty where no event is expected and some are claimed."""
    predicted, expected = reply_times(text), true_times(answer)
    if expected == [] and not predicted:
        return dict.fromkeys(TOLERANCES_S, 1.0)
    if not expected:
        return {}
    return {tolerance_s: average_precision(predicted, expected, tolerance_s) for tolerance_s in TOLERANCES_S}


def mean_precision(found: dict[float, float]) -> float:
    """Mean over the tolerances."""
    return sum(found.values()) / len(found) if found else 0.0


def _rule(text: str, question: Question) -> Scored:
    times = reply_times(text)
    return Scored(mean_precision(precisions(text, question.answer)), times, parsed=bool(times) or "[]" in text)


OV2 = Profile(
    "jumpscore.ov2",
    1,
    "EvolvingLMMs-Lab/lmms-eval @3997a60, lmms_eval/tasks/jumpscore/utils.py, jumpscore_process_results",
    _rule,
)
