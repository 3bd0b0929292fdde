"""ReVSI (`3dlg-hcvc/ReVSI`): VSI-Bench's questions on scans annotated again, thirteen types, seven numbers."""

from __future__ import annotations

from vidpipe.benchmarks.mra import official_mra
from vidpipe.benchmarks.profile import Profile, Question, Scored
from vidpipe.benchmarks.vsi import number_score, official_choice, official_number

GROUPS: dict[str, tuple[str, ...]] = {
    "object_abs_distance": ("object_abs_distance",),
    "object_size_estimation": ("object_size_estimation",),
    "route_planning": ("route_planning",),
    "object_rel_direction": tuple(
        f"object_rel_direction_{way}_{level}" for level in ("easy", "hard") for way in ("forward", "backward")
    ),
    "object_rel_distance": ("object_rel_distance_closest", "object_rel_distance_farthest"),
    "object_counting": ("object_counting_single", "object_counting_multiple"),
    "room_size_estimation": ("room_size_estimation_single", "room_size_estimation_multiple"),
}
CHOICES = (*GROUPS["object_rel_direction"], *GROUPS["object_rel_distance"], "route_planning")


def number(text: str, answer: object) -> Scored:
    """VSI-Bench's official measure of the stripped reply's first word; a target of 0 (there: caught) scores 0."""
    return number_score(text.strip(), answer, official_number, defined_or_zero)


def defined_or_zero(prediction: float, target: float) -> float:
    """The official measure, and 0 for a target of 0."""
    return 0.0 if target == 0 else official_mra(prediction, target)


def _rule(text: str, question: Question) -> Scored:
    if question.question_type in CHOICES:
        return official_choice(text.strip(), str(question.answer))
    if any(question.question_type in kinds for kinds in GROUPS.values()):
        return number(text, question.answer)
    raise ValueError(f"question_type {question.question_type!r} is none of ReVSI's thirteen")


LMMS_MAIN = Profile(
    "revsi.lmms_main",
    1,
    "EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/revsi/utils.py, revsi_process_results",
    _rule,
    GROUPS,
)
