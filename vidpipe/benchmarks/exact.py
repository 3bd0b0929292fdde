"""The plainest rule, nobody's benchmark: the reply is the answer. As the summary at the end of a run counts."""

from __future__ import annotations

from vidpipe.benchmarks.profile import Profile, Question, Scored


def _equal(text: str, question: Question) -> Scored:
    answer = question.answer if isinstance(question.answer, str) else str(question.answer)
    return Scored(float(text.strip() == answer), text.strip())


EXACT = Profile("exact", 1, "the reply, without white space around it, is the answer", _equal)
