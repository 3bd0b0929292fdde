"""Letters as MMMU's evaluation reads them, of which EgoSchema and NExT-QA have variants. No random options."""

from __future__ import annotations

from collections.abc import Sequence


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
