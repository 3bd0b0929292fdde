"""EgoSchema and NExT-QA: letters as MMMU's evaluation reads them, in two variants. No random options."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vidpipe.benchmarks.multiple_choice import right_letter
from vidpipe.benchmarks.profile import Profile, Question, Scored
from vidpipe.manifest.answers import LETTERS

LMMS = "EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks"


def _padded(text: str) -> str:
    for mark in ",.!?;:'":
        text = text.strip(mark)
    return f" {text} "


def _by_content(text: str, options: Sequence[str]) -> list[tuple[int, int]]:
    """Place of each option's text and the option's number, in replies of more than five words."""
    if len(text.split()) <= 5:
        return []
    lower = text.lower()
    return [(lower.rfind(option.lower()), n) for n, option in enumerate(options) if option.lower() in lower]


def first_candidate(text: str, options: Sequence[str]) -> int | None:
    """Number of the option whose last mention as `(A)`, `A ` or `A.` comes first; None where upstream draws one.

    EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/egoschema/utils.py, parse_multi_choice_response.
    """
    text = _padded(text)
    found = [
        (text.rfind(form.format(chr(65 + n))), n)
        for form in ("({})", "{} ", "{}.")
        for n in range(len(options))
        if form.format(chr(65 + n)) in text
    ] or _by_content(text, options)
    return min(found, key=lambda one: one[0])[1] if found else None


def last_candidate(text: str, options: Sequence[str]) -> int | None:
    """Number of the option that is mentioned last, in the first form that occurs; None where upstream draws one.

    EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/nextqa/utils.py, parse_multi_choice_response.
    """
    text = _padded(text)
    for form, place_form in (("({})", "({})"), ("{} ", " {} "), ("{}.", " {} ")):
        found = [
            (text.rfind(place_form.format(chr(65 + n))), n)
            for n in range(len(options))
            if form.format(chr(65 + n)) in text
        ]
        if found:
            return max(found, key=lambda one: one[0])[1]
    content = _by_content(text, options)
    return max(content, key=lambda one: one[0])[1] if content else None


def _by_candidate(read: Callable[[str, Sequence[str]], int | None]) -> Callable[[str, Question], Scored]:
    def rule(text: str, question: Question) -> Scored:
        place = read(text, question.options)
        letter = None if place is None else LETTERS[place]
        return Scored(float(letter == right_letter(question)), letter, parsed=letter is not None)

    return rule


EGOSCHEMA = Profile(
    "egoschema.lmms_main",
    1,
    f"{LMMS}/egoschema/utils.py; no random options",
    _by_candidate(first_candidate),
    submission=lambda text, question: first_candidate(text, question.options),
)
NEXTQA = Profile("nextqa.lmms_main", 1, f"{LMMS}/nextqa/utils.py; no random options", _by_candidate(last_candidate))
