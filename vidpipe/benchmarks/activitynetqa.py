"""ActivityNet-QA: open answers, compared as texts or by a judge model whose replies are imported."""

from __future__ import annotations

import ast

from vidpipe.benchmarks.profile import Profile, Question, Scored

JUDGE_SOURCE = (
    "EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/activitynetqa/utils.py, parse_score; "
    "rows without a readable verdict are wrong"
)


def exact_text(text: str, question: Question) -> Scored:
    """MILVLG/activitynet-qa @2cf80ae, evaluation/eval.py: equality of texts, case and full stops included."""
    return Scored(float(text == question.answer or text in question.answers), text)


def judge_reply(reply: str) -> tuple[str, int] | None:
    """Verdict and score from 0 to 5 of a judge; None where the reply holds no such object.

    `parse_score`: a verdict with `no` in it is `no`.
    """
    try:
        found = ast.literal_eval("{" + reply.split("{")[1].split("}", maxsplit=1)[0] + "}")
        score, verdict = int(found["score"]), found["pred"]
        word = next((word for word in ("yes", "no") if word in verdict.lower()), verdict)
    except (
        SyntaxError,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        OverflowError,
        RecursionError,
        MemoryError,
    ):
        return None
    return word, score


def _judged(text: str, question: Question) -> tuple[str, int] | None:
    if question.judgement is None:
        raise ValueError("this profile needs a judge's replies; give them with --judge FILE.jsonl")
    return judge_reply(question.judgement)


def _verdict(text: str, question: Question) -> Scored:
    found = _judged(text, question)
    return Scored(float(found is not None and found[0] == "yes"), found and list(found), parsed=found is not None)


def _grade(text: str, question: Question) -> Scored:
    found = _judged(text, question)
    return Scored(min(max(found[1], 0), 5) / 5 if found else 0.0, found and list(found), parsed=found is not None)


EXACT = Profile("activitynetqa.exact", 1, "MILVLG/activitynet-qa @2cf80ae, evaluation/eval.py", exact_text)
JUDGE = Profile("activitynetqa.judge", 1, f"{JUDGE_SOURCE}: share of `yes`", _verdict)
JUDGE_SCORE = Profile("activitynetqa.judge_score", 1, f"{JUDGE_SOURCE}: mean score, of which 5 is 100 %", _grade)
