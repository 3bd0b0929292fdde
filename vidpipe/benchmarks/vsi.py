"""VSI-Bench (Yang et al., arXiv:2412.14171): ten question types about rooms, eight numbers, one mean of them.

The published numbers, LLaVA-OneVision-2's included, come from the official rules: the first word
of a reply must be the answer. Later harnesses read replies more kindly, so the same
replies score differently there; hence a profile for each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vidpipe.benchmarks.letters import lenient_letter, tail_letter
from vidpipe.benchmarks.mra import official_mra, vlmevalkit_mra, zero_exact_mra
from vidpipe.benchmarks.numbers import first_number_or_word, first_token, last_number, lenient_number, to_float
from vidpipe.benchmarks.profile import Profile, Question, Scored

NUMBER_TYPES = ("object_counting", "object_abs_distance", "object_size_estimation", "room_size_estimation")
DIRECTION_TYPES = tuple(f"object_rel_direction_{level}" for level in ("easy", "medium", "hard"))
CHOICE_TYPES = (*DIRECTION_TYPES, "object_rel_distance", "route_planning", "obj_appearance_order")
GROUPS: dict[str, tuple[str, ...]] = {
    **{name: (name,) for name in NUMBER_TYPES},
    "object_rel_distance": ("object_rel_distance",),
    "object_rel_direction": DIRECTION_TYPES,
    "route_planning": ("route_planning",),
    "obj_appearance_order": ("obj_appearance_order",),
}
"""In the order of the official table; the three levels of direction weigh the same whatever their counts."""


def official_choice(text: str, answer: str) -> Scored:
    """First word, without full stops, equal to the letter in any case: `B.` is right, `(B)` and `**B**` are not."""
    token = first_token(text)
    return Scored(float(token.lower() == answer.lower()), token, parsed=len(token) == 1 and token.isalpha())


def vlmevalkit_choice(text: str, answer: str) -> Scored:
    """VLMEvalKit @e8e78f0, vlmeval/dataset/utils/spatial_bench/cal_scores.py, compute_mcq_score."""
    letter = tail_letter(text)
    return Scored(float(letter is not None and letter == tail_letter(answer)), letter, parsed=letter is not None)


def number_score(
    text: str, answer: object, read: Callable[[str], float | None], measure: Callable[[float, float], float]
) -> Scored:
    """A numeric reply: read, then measured; an unreadable reply or answer scores 0.

    Raises:
        ZeroDivisionError: `measure` has no value for a target of 0.
    """
    value, target = read(text), to_float(answer)
    score = 0.0 if value is None or target is None else measure(value, target)
    return Scored(score, value, parsed=value is not None)


def official_number(text: str) -> float | None:
    """The first word as Python reads floats."""
    return to_float(first_token(text))


def defined_mra(prediction: float, target: float) -> float:
    """The official measure, with a value where the official code ends the run: of 0, only 0 is right."""
    return zero_exact_mra(prediction, target) if target == 0 else official_mra(prediction, target)


def _lenient_choice(text: str, question: Question) -> Scored:
    letters = "ABCDEFGHIJ"[: len(question.options) or None]
    letter = lenient_letter(text, letters)
    return Scored(float(letter == str(question.answer).strip().upper()), letter, parsed=letter is not None)


def _by_type(
    choice: Callable[[str, Question], Scored], number: Callable[[str, Any], Scored]
) -> Callable[[str, Question], Scored]:
    def rule(text: str, question: Question) -> Scored:
        if question.question_type in NUMBER_TYPES:
            return number(text, question.answer)
        if question.question_type in CHOICE_TYPES:
            return choice(text, question)
        raise ValueError(f"question_type {question.question_type!r} is none of VSI-Bench's ten")

    return rule


OFFICIAL = Profile(
    "vsi.official",
    1,
    "vision-x-nyu/thinking-in-space @51e089c, lmms_eval/tasks/vsibench/utils.py, vsibench_process_results; "
    "a target of 0 (there: an exception) scores 1 for 0 and else 0",
    _by_type(
        lambda text, question: official_choice(text, str(question.answer)),
        lambda text, answer: number_score(text, answer, official_number, defined_mra),
    ),
    GROUPS,
)
LMMS_MAIN = Profile(
    "vsi.lmms_main",
    1,
    "EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/vsibench/utils.py, vsibench_process_results; "
    "a target of 0 (there: an exception) scores 1 for 0 and else 0",
    _by_type(
        lambda text, question: official_choice(text, str(question.answer)),
        lambda text, answer: number_score(text, answer, first_number_or_word, defined_mra),
    ),
    GROUPS,
)
VLMEVALKIT = Profile(
    "vsi.vlmevalkit",
    1,
    "open-compass/VLMEvalKit @e8e78f0, vlmeval/dataset/utils/spatial_bench, compute_mcq_score and compute_na_score",
    _by_type(
        lambda text, question: vlmevalkit_choice(text, str(question.answer)),
        lambda text, answer: number_score(text, answer, last_number, vlmevalkit_mra),
    ),
    GROUPS,
)
LENIENT = Profile(
    "vsi.lenient",
    2,
    "vidpipe: the official measures on a lenient reading; never a headline",
    _by_type(
        _lenient_choice,
        lambda text, answer: number_score(text, answer, lenient_number, defined_mra),
    ),
    GROUPS,
)
