"""EgoSchema, NExT-QA, ActivityNet-QA and Video-MME-v2: rules of their own around a row's answer."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from vidpipe.benchmarks.candidates import first_candidate, last_candidate
from vidpipe.benchmarks.multiple_choice import LETTERS, by_letter, right_letter, videomme_v2_letter
from vidpipe.benchmarks.profile import Profile, Question, Scored

LMMS = "EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks"


def _by_candidate(read: Callable[[str, Sequence[str]], int | None]) -> Callable[[str, Question], Scored]:
    def rule(text: str, question: Question) -> Scored:
        place = read(text, question.options)
        letter = None if place is None else LETTERS[place]
        return Scored(float(letter == right_letter(question)), letter, parsed=letter is not None)

    return rule


def exact_text(text: str, question: Question) -> Scored:
    """MILVLG/activitynet-qa @2cf80ae, evaluation/eval.py: equality of texts, case and full stops included."""
    return Scored(float(text == question.answer), text)


def judge_reply(reply: str) -> tuple[str, int] | None:
    """Verdict and score from 0 to 5 of a judge of ActivityNet-QA; None where the reply holds no such object.

    lmms-eval @75571cf, lmms_eval/tasks/activitynetqa/utils.py, parse_score: a verdict with `no` in it is `no`.
    """
    try:
        found = ast.literal_eval("{" + reply.split("{")[1].split("}", maxsplit=1)[0] + "}")
        score, verdict = int(found["score"]), found["pred"]
        word = next((word for word in ("yes", "no") if word in verdict.lower()), verdict)
    except (SyntaxError, ValueError, TypeError, LookupError, AttributeError):
        return None
    return word, score


_WEIGHTS = {
    "[1,2,3,4]": (16, (0, 1, 4, 9, 16)),
    "[1,[2,3],4]": (12, (0, 1, 4, 7, 12)),
    "[[1,2],3,4]": (10, (0, 1, 2, 5, 10)),
}
"""Structure of a logic group -> points for the whole, and for each length of the right beginning."""


def group_score(scores: Sequence[int], group_type: str, structure: str | None) -> float:
    """Percent for four answers of Video-MME-v2 that belong together.

    EvolvingLMMs-Lab/lmms-eval @3997a60, lmms_eval/tasks/videommev2/utils.py, _cal_relevance and
    _cal_logic: relevance counts right answers; logic counts the right ones before the first
    wrong one, where of two parallel questions the second may stand in for the first.

    Raises:
        ValueError: the structure is not known.
    """
    if group_type == "relevance":
        return 100 * sum(scores) ** 2 / 16 if sum(scores) <= 4 else 0.0
    key = (structure or "").replace(" ", "")
    if key not in _WEIGHTS:
        raise ValueError(f"group structure {structure!r} is not known; there are {', '.join(_WEIGHTS)}")
    right = next((n for n, score in enumerate(scores) if not score), len(scores))
    parallel = {"[1,[2,3],4]": 1, "[[1,2],3,4]": 0}.get(key)
    if parallel is not None and right == parallel and scores[parallel + 1]:
        right += 1
    whole, points = _WEIGHTS[key]
    return 100 * points[right] / whole


EGOSCHEMA = Profile(
    "egoschema.lmms_main", 1, f"{LMMS}/egoschema/utils.py; no random options", _by_candidate(first_candidate)
)
NEXTQA = Profile("nextqa.lmms_main", 1, f"{LMMS}/nextqa/utils.py; no random options", _by_candidate(last_candidate))
ACTIVITYNETQA = Profile("activitynetqa.exact", 1, "MILVLG/activitynet-qa @2cf80ae, evaluation/eval.py", exact_text)
VIDEOMME_V2 = Profile(
    "videomme_v2.rows",
    1,
    "EvolvingLMMs-Lab/lmms-eval @3997a60, lmms_eval/tasks/videommev2/utils.py, _extract_answer; "
    "accuracy of rows, not the benchmark's score of groups",
    by_letter(videomme_v2_letter),
)
