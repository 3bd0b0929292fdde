"""Our reading of a span of time, for the column that asks whether the model or the format failed.

Each upstream extractor misses forms that say a span plainly: `5s-10s`, `starts at 5 and ends at 10`,
`[5, 10]`, `0:05 to 0:10`. Here all of them are spans.
"""

from __future__ import annotations

import re

from vidpipe.benchmarks.reasoning import is_cut_reasoning, strip_reasoning

_TIME = r"(?P<{name}>\d+(?::\d{{2}}){{1,2}}(?:\.\d+)?|\d+(?:\.\d+)?)\s*(?:s|secs?|seconds?)?\b"
_FIRST, _SECOND = _TIME.format(name="first"), _TIME.format(name="second")
_RANGE = re.compile(rf"{_FIRST}\s*(?:-|\u2013|\u2014|~|to|and|until|till|,|;)\s*{_SECOND}")
_START = re.compile(rf"\b(?:start|begin|from)[^\d]{{0,40}}?{_FIRST}")
_END = re.compile(rf"\b(?:end|finish|stop|until)[^\d]{{0,40}}?{_FIRST}")


def lenient_span(text: str) -> list[tuple[float, float]]:
    """At most one span in seconds, start before end.

    Reasoning is dropped (a reply cut inside it has no span). A named start with a named end goes
    first, then the first two times that a dash, a comma, `to` or `and` joins.
    """
    text = strip_reasoning(text).lower()
    if is_cut_reasoning(text):
        return []
    start, end = _START.search(text), _END.search(text)
    if start and end and start["first"] != end["first"]:
        found = [start["first"], end["first"]]
    elif joined := _RANGE.search(text):
        found = [joined["first"], joined["second"]]
    else:
        return []
    first, second = sorted(map(_seconds, found))
    return [(first, second)]


def _seconds(time: str) -> float:
    value = 0.0
    for part in time.split(":"):
        value = 60 * value + float(part)
    return value
