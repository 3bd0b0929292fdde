"""Reading a number out of a reply, as each harness does it."""

from __future__ import annotations

import ast
import re
import unicodedata

from vidpipe.benchmarks.reasoning import strip_reasoning

_UNITS = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
    "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
NUMBER_WORDS: dict[str, int] = {
    **{word: value for value, word in enumerate(_UNITS)},
    **{word: 10 * value for value, word in enumerate(_TENS, 2)},
    "hundred": 100,
    "thousand": 1000,
}
_WORD = re.compile("[a-z]+")
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?")
_SIGNED = r"[-+]?(?:\d*\.\d+|\d+)(?:[eE][-+]?\d+)?"
_TAGGED = re.compile(rf"<\s*answer\b[^>]*>\s*({_SIGNED})(?:[^\d<][^<]*)?<\s*/\s*answer\s*>", re.IGNORECASE)
_TO_TWENTY = re.compile(rf"\b(?:{'|'.join([*_UNITS, 'twenty'])})\b", re.IGNORECASE)
ZERO_WIDTH = re.compile("[\u200b\u200c\u200d\ufeff]")
_THINK_END = re.compile(r"</\s*think\s*>", re.IGNORECASE)
_THINK_START = re.compile(r"<\s*think\s*>", re.IGNORECASE)


def first_token(text: str) -> str:
    """What stands before the first space (U+0020 only), without full stops behind it.

    thinking-in-space @51e089c, lmms_eval/tasks/vsibench/utils.py, fuzzy_matching.
    """
    return text.split(" ", maxsplit=1)[0].rstrip(".").strip()


def to_float(text: object) -> float | None:
    """The float that Python reads, `nan`, `1_200` and `1e3` included; None where it reads none."""
    try:
        return float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None


def first_number_or_word(text: str) -> float | None:
    """The first number in digits or in English words.

    lmms-eval @75571cf, lmms_eval/tasks/vsibench/utils.py, extract_number: `1,200` is 1, and
    a run of words ends at the first word that is neither a number nor `and`.
    """
    text = text.strip().lower()
    digits = _PLAIN.search(text)
    words = [match for match in _WORD.finditer(text) if match.group() in NUMBER_WORDS]
    if digits and (not words or digits.start() < words[0].start()):
        return float(digits.group())
    return _words_value(text, words[0].start()) if words else None


def _words_value(text: str, start: int) -> float:
    """Value of the run of number words that begins at `start`."""
    total = current = 0
    for match in _WORD.finditer(text, start):
        word = match.group()
        if word == "and":
            continue
        if word not in NUMBER_WORDS:
            break
        value = NUMBER_WORDS[word]
        if value == 1000:
            total, current = total + max(current, 1) * 1000, 0
        elif value == 100:
            current = max(current, 1) * 100
        else:
            current += value
    return float(total + current)


def first_number_or_zero(text: str) -> float:
    """The first number in digits; 0 where there is none, so that an empty reply to "how many" can be right.

    lmms-eval @75571cf, lmms_eval/tasks/vsisuper/count/vsc_utils.py, _extract_number.
    """
    match = _PLAIN.search(text)
    return float(match.group()) if match else 0.0


def after_thinking(text: str) -> str:
    """What follows the last closing `think` tag, else the last opening one, else everything.

    VLMEvalKit @e8e78f0, vlmeval/dataset/utils/spatial_bench/matching_func.py, _after_think.
    """
    for tag in (_THINK_END, _THINK_START):
        if found := list(tag.finditer(text)):
            return text[found[-1].end() :].strip()
    return text


def last_number(text: str) -> float | None:
    """A number in an `answer` tag, else the last one behind the reasoning, else the last one at all.

    VLMEvalKit @e8e78f0, vlmeval/dataset/utils/spatial_bench/matching_func.py, can_match_na:
    words up to twenty count, a range `3-4` ends in -4, `1,200` is 200, of a list the first entry is read.
    """
    if text.strip().startswith("[") and text.strip().endswith("]"):
        try:
            entries = ast.literal_eval(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return None
        text = str(entries[0]) if isinstance(entries, list) and entries else text
    text = ZERO_WIDTH.sub("", text.strip())
    text = _TO_TWENTY.sub(lambda match: str(NUMBER_WORDS[match.group().lower()]), text)
    if tagged := _TAGGED.search(text):
        return float(tagged.group(1))
    found = re.findall(_SIGNED, after_thinking(text)) or re.findall(_SIGNED, text)
    return float(found[-1]) if found else None


_GROUPED = re.compile(
    r"(?<![\w.,])[-+]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)?(?:(?<=\d)\.\d*|\.\d+)?(?:(?<=[\d.])[eE][-+]?\d+)?"
)
_ANNOUNCED = re.compile(r"(?:answer\b\s*(?:is\b|:)?|=|<\s*answer\s*>|\\boxed\s*\{)", re.IGNORECASE)
_SPACED = re.compile(r"(?<![\d.,])\d{1,3}(?: \d{3})+(?![\d,]|\.\d)")
_MINUS = re.compile(r"\b(?:minus|negative)\s+(?=[\d.])")
_VALUES = re.compile("|".join([r"\d", *NUMBER_WORDS]))
_DOZENS = re.compile(r"\bdozens?\b")


def lenient_number(text: str) -> float | None:
    """Our reading for the column that asks whether the model or the format failed.

    Reasoning is dropped (a reply cut inside it has no number), thousands separators and
    number words count, and a number behind `answer` or `=` goes before the first one. A
    chain like `2.0.1` is no number, and dozens are not counted.
    """
    text = unicodedata.normalize("NFKC", ZERO_WIDTH.sub("", strip_reasoning(text))).lower()
    if _THINK_START.match(text) or _DOZENS.search(text):
        return None
    text = _MINUS.sub("-", _SPACED.sub(lambda match: match.group().replace(" ", ""), text))
    last = max((match.start() for match in _VALUES.finditer(text)), default=-1)
    # A reply may say `answer` thousands of times: what has no number behind it is not gone through.
    pieces = [text[match.end() :] for match in _ANNOUNCED.finditer(text) if match.end() <= last][::-1]
    return next((value for piece in [*pieces, text] if (value := _first_value(piece)) is not None), None)


def _first_value(text: str) -> float | None:
    words = [match.start() for match in _WORD.finditer(text) if match.group() in NUMBER_WORDS]
    for match in _GROUPED.finditer(text):
        value = to_float(match.group().replace(",", ""))
        if value is None or re.match(r"\.?\d|[,_]\d", text[match.end() :]):
            continue
        return _words_value(text, words[0]) if words and words[0] < match.start() else value
    return _words_value(text, words[0]) if words else None
