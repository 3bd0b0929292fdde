"""Reading an option's letter out of a reply."""

from __future__ import annotations

import re
import unicodedata

from vidpipe.benchmarks.numbers import ZERO_WIDTH, after_thinking
from vidpipe.benchmarks.reasoning import strip_reasoning

_TAIL_LINES = 6
_TAIL_CHARACTERS = 800
_FULL_STOP, _COLON, _OPEN, _CLOSE, _BOX = "\uff0e", "\uff1a", "\uff08", "\uff09", "\u3010\u3011"
_ANSWER_BLOCK = re.compile(r"<\s*answer\b[^>]*>\s*([A-J]).*?<\s*/\s*answer\s*>", re.IGNORECASE | re.DOTALL)
_BEFORE_TAG = tuple(
    re.compile(rf"(?<![A-Za-z])([A-F])\s*[)\]}}{_CLOSE}\u3011]?\s*</\s*{tag}\s*>", re.IGNORECASE)
    for tag in ("answer", "think")
)
_OPTION_LINE = re.compile(rf"[*_>\-\s]*(?:option|\u9009\u9879)\s+[A-J]\s*[:{_COLON}]", re.IGNORECASE)
_LETTER_LINE = re.compile(rf"\s*[*_`>{_OPEN}{_CLOSE}\[\]{_BOX}()]*\s*([A-Fa-f])\s*[*_`{_OPEN}{_CLOSE}\[\]{_BOX}()]*\s*")
_LABELLED_LINE = re.compile(rf"\s*([A-F])\s*[.{_FULL_STOP}:{_COLON})\]\u3011\u3001-]\s+", re.IGNORECASE)
_TOKEN = re.compile(
    rf"(?<![A-Za-z])([A-F])\s*[*_`{_CLOSE}\]}})]*"
    rf"(?=$|[\s.,:;!?)\]\u3011\u300b\u300d\u300f\uff0c\u3002\uff1b\u3001{_COLON}{_CLOSE}])"
)
_CONCLUSION = re.compile(
    r"(?:answer(?:\s*is)?|\u7b54\u6848|\u7ed3\u8bba|\u6240\u4ee5|\u56e0\u6b64|\u9009\u62e9?)"
    rf"\s*[:{_COLON}>\uff1d=]?\s*[(\[{{{_OPEN}\u3010]?\s*([A-F])\s*[)\]}}{_CLOSE}\u3011]?(?:\b|[.)\u3001\u3002])",
    re.IGNORECASE,
)
_ALONE = re.compile("(?<![A-Za-z])([A-F])(?![A-Za-z])")


def tail_letter(text: str) -> str | None:
    """The option that a reply ends on, from A to F; None where it does not settle on one.

    Equal to VLMEvalKit @e8e78f0, vlmeval/dataset/utils/spatial_bench/matching_func.py,
    can_match_option: an `answer` tag first, then the last lines (behind the reasoning, then
    of the whole reply), then `answer is X`, then a letter that is the only one in the reply.
    """
    text = ZERO_WIDTH.sub("", text.strip())
    if block := _ANSWER_BLOCK.search(text):
        return str(block.group(1)).upper()
    for before in _BEFORE_TAG:
        if tagged := before.search(text[-_TAIL_CHARACTERS:]):
            return tagged.group(1).upper()
    for part in (after_thinking(text), text[-_TAIL_CHARACTERS:]):
        if letter := _of_last_lines(part):
            return letter
    if match := _CONCLUSION.search(text):
        return match.group(1).upper()
    lines = [line for line in text.splitlines() if not _OPTION_LINE.match(line)]
    alone: set[str] = set(_ALONE.findall("\n".join(lines)))
    return alone.pop() if len(alone) == 1 else None


def _of_last_lines(text: str) -> str | None:
    for line in reversed(text.splitlines()[-_TAIL_LINES:]):
        line = line.strip()  # noqa: PLW2901
        if not line or _OPTION_LINE.match(line):
            continue
        if match := _LETTER_LINE.fullmatch(line) or _LABELLED_LINE.match(line):
            return match.group(1).upper()
        tokens: set[str] = set(_TOKEN.findall(line))
        if len(tokens) == 1:
            return tokens.pop()
    return None


_DECORATION = re.compile(r"[*_`$\"']|\\(?:text|mathrm|mathbf)\b")
_LENIENT = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?i:<\s*answer\s*>|\\boxed\s*)[\s({]*([A-Za-z])\b",
        r"(?i:answer|option|choice|\u7b54\u6848)\s*(?i:is|should be|\u662f|\u4e3a)?\s*:?\s*"
        r"[\[({]*([A-Z])(?![A-Za-z0-9])",
        r"(?i:answer|option|choice)\s*(?i:is)?\s*:?\s*[\[({]*([a-z])[\])}]*\s*[.!]?\s*$",
    )
)
_WHOLE = re.compile(r"\W*([A-Za-z])\W*")
_LEADING = re.compile(r"\s*[(\[]?([A-Z])[)\].:,](?=\s|$)|\s*[(\[]?([A-Z])[)\]:]")
_LONELY = re.compile(r"(?<![A-Za-z0-9'])(?!I\b|A\s+(?!and\b|or\b)[a-z])([A-Z])(?![A-Za-z0-9'])")


def lenient_letter(text: str, letters: str = "ABCDEFGHIJ") -> str | None:
    """Our reading for the column that asks whether the model or the format failed.

    Reasoning is dropped (a reply cut inside it has no letter); an announced letter goes
    first, then one that the reply consists of or begins with, then the only one in it.

    Args:
        text: The reply.
        letters: Letters of the options; another one is no answer.
    """
    text = unicodedata.normalize("NFKC", ZERO_WIDTH.sub("", strip_reasoning(text)))
    if text.lstrip().lower().startswith("<think>"):
        return None
    text = _DECORATION.sub("", text).strip()
    for announced in _LENIENT:
        if found := announced.findall(text):
            return _allowed(found[-1], letters)
    if match := _WHOLE.fullmatch(text):
        return _allowed(match.group(1), letters)
    if match := _LEADING.match(text):
        return _allowed(match.group(1) or match.group(2), letters)
    lonely = set(_LONELY.findall(text))
    return _allowed(lonely.pop(), letters) if len(lonely) == 1 else None


def _allowed(letter: str, letters: str) -> str | None:
    return letter.upper() if letter.upper() in letters else None
