"""Temporal grounding: when does it happen? Spans read out of replies, measured by overlap.

Charades-STA and TimeLens' re-annotated sets, whose numbers are not comparable with each other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from vidpipe.benchmarks.intervals import interval_iou
from vidpipe.benchmarks.lenient_span import lenient_span
from vidpipe.benchmarks.profile import Profile, Question, Scored

Span = tuple[float, float]
LONGEST_S = 1e9
"""Beyond every video; keeps out NaN, infinities and whole numbers that are no floats."""
_EXAMPLE = "a specific example is : 20.8 - 30.0 seconds"
_SENTENCE_END = re.compile(r"[!?\n]")
_ABOUT_TIME = ("start", "end", "happen")
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2})?"
_CLOCK_RANGE = re.compile(rf"\b({_CLOCK})\s*[\u2013-]\s*({_CLOCK})\b")
_ONE_CLOCK = re.compile(rf"\b{_CLOCK}\b")
_LONG_CLOCK = re.compile(r"\b\d{1,2}:\d{2}:\d{2}\b")
_NUMBER = r"\d+(?:\.\d+)?"
_RANGE = re.compile(rf"({_NUMBER})\s*[\u2013-]\s*({_NUMBER})")
_RANGE_S = re.compile(rf"({_NUMBER})\s*s?\s*[\u2013-]\s*({_NUMBER})\s*s?")
_ONE_NUMBER = re.compile(rf"\b{_NUMBER}\b")
_TIMELENS_CLOCK = re.compile(r"\b(?:\d{1,2}:\d{2}:\d{2}(?:\.\d+)?|\d{1,2}:\d{2}(?:\.\d+)?)\b")
_TIMELENS_RANGES = tuple(  # `++`: a reply of thousands of digits is gone through once, not from each of them anew
    re.compile(rf"(?<!\d)(\d++(?:\.\d*+)?){between}(\d+(?:\.\d*)?)") for between in (r"\s*-\s*", r"\s+to\s+")
)
_TIMELENS_NUMBER = re.compile(r"\b\d+\.?\d*\b")


def _seconds(clock: str) -> float:
    value = 0.0
    for part in clock.split(":"):
        value = 60 * value + float(part)
    return value


def _pairs(times: list[float]) -> list[Span]:
    return list(zip(times[::2], times[1::2], strict=False))


def _sentences(text: str, *, need_keyword: bool) -> list[str]:
    """Sentences that speak of a start, an end or a happening; `to` becomes a dash, in words too."""
    sentences = _SENTENCE_END.split(text.lower().replace(_EXAMPLE, "").replace("to", "-"))
    chosen = [sentence for sentence in sentences if any(word in sentence for word in _ABOUT_TIME)]
    return chosen if chosen or need_keyword else sentences


def _first_range(sentences: list[str], pattern: re.Pattern[str], read: Callable[[str], float]) -> list[Span]:
    for sentence in sentences:
        if found := pattern.findall(sentence):
            return [(read(start), read(end)) for start, end in found]
    return []


def _first_numbers(sentences: list[str], pattern: re.Pattern[str], read: Callable[[str], float]) -> list[Span]:
    """One time a sentence, two sentences a span."""
    return _pairs([read(found[0]) for sentence in sentences if (found := pattern.findall(sentence))])


def _ordered(spans: list[Span]) -> list[Span]:
    return [(min(span), max(span)) for span in spans[:1]]


def charades_spans(text: str) -> list[Span]:
    """At most one span in seconds, put in order.

    Equal to EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/charades_sta/utils.py, extract_time: `starts at 5
    and ends at 10` in one sentence is not read.
    """
    sentences = _sentences(text, need_keyword=False)
    clocks = [_seconds(clock) for sentence in sentences for clock in _ONE_CLOCK.findall(sentence)]
    return _ordered(
        _first_range(sentences, _CLOCK_RANGE, _seconds)
        or _first_range(sentences, _RANGE, float)
        or _pairs(clocks)
        or _first_numbers(sentences, _ONE_NUMBER, float)
        or _first_range(sentences, _RANGE_S, float)
    )


def eval_tvg_spans(text: str) -> list[Span]:
    """The same in the older copy, which reads only sentences that have a keyword.

    lmms-eval @75571cf, lmms_eval/tasks/charades_sta/eval_tvg.py, extract_time; what the llava-onevision2 branch runs.
    """
    sentences = _sentences(text, need_keyword=True)
    return _ordered(
        _first_range(sentences, _RANGE, float)
        or _first_numbers(sentences, _ONE_NUMBER, float)
        or _first_numbers(sentences, _LONG_CLOCK, _seconds)
        or _first_range(sentences, _RANGE_S, float)
    )


def timelens_spans(text: str) -> list[Span]:
    """All spans in seconds, in the reply's own order of start and end.

    lmms-eval @75571cf, lmms_eval/tasks/timelens/utils.py, extract_time.
    """
    text = text.lower()
    if spans := _pairs([_seconds(clock) for clock in _TIMELENS_CLOCK.findall(text)]):
        return spans
    for pattern in _TIMELENS_RANGES:
        if found := pattern.findall(text):
            return [(float(start), float(end)) for start, end in found]
    return _pairs([float(number) for number in _TIMELENS_NUMBER.findall(text)])


def overlap(text: str, answer: Any, read: Callable[[str], list[Span]]) -> Scored:
    """Intersection over union of the reply's first span with `answer`, whose first span counts.

    Raises:
        ValueError: the answer is no span.
    """
    target, spans = true_span(answer), read(text)
    if not spans:
        return Scored(0.0, parsed=False)
    return Scored(interval_iou(spans[0], target), list(spans[0]))


def true_span(answer: Any) -> Span:
    """The first span of [start, end] or [[start, end], ...], also as JSON text: CSV has no other way to write it.

    Raises:
        ValueError: it is neither.
    """
    found = answer
    if isinstance(answer, str):
        with suppress(ValueError, RecursionError):
            found = json.loads(answer)
    if isinstance(found, list | tuple) and found and isinstance(found[0], list | tuple):
        found = found[0]
    if not (isinstance(found, list | tuple) and len(found) == 2 and all(map(_is_time, found))):
        raise ValueError(f"answer {answer!r} is no span [start, end] in seconds")
    return float(found[0]), float(found[1])


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LONGEST_S


def _profile(name: str, source: str, read: Callable[[str], list[Span]], threshold: float | None) -> Profile:
    def rule(text: str, question: Question) -> Scored:
        found = overlap(text, question.answer, read)
        hit = found.score if threshold is None else float(found.score >= threshold)
        return Scored(hit, found.extracted, found.parsed)

    measure = "mean IoU" if threshold is None else f"share of rows with an IoU of {threshold} or more"
    return Profile(name, 1, f"{source}; {measure}; every row counts", rule)


MEASURES: dict[str, float | None] = {"miou": None, "r30": 0.3, "r50": 0.5, "r70": 0.7}
_READERS = {
    "charades.lmms_main": (
        "EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/charades_sta/utils.py",
        charades_spans,
    ),
    "timelens.lmms_main": ("EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/timelens/utils.py", timelens_spans),
    "charades.lenient": ("vidpipe: the official measures on a lenient reading; never a headline", lenient_span),
    "timelens.lenient": ("vidpipe: the official measures on a lenient reading; never a headline", lenient_span),
}
PROFILES: dict[str, Profile] = {
    f"{name}.{measure}": _profile(f"{name}.{measure}", source, read, threshold)
    for name, (source, read) in _READERS.items()
    for measure, threshold in MEASURES.items()
}
