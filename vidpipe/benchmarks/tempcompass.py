"""TempCompass: the rules before the judge. A reply that no rule matches is wrong here, and counted as unread.

EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/tempcompass/utils.py; VLMEvalKit @e8e78f0 has the same.
"""

from __future__ import annotations

from vidpipe.benchmarks.profile import Profile, Question, Scored


def choice(text: str, answer: str) -> bool | None:
    """Whether the reply is `answer` (`B. left`), its letter, or begins with the letter; None: no rule matches."""
    if text == answer:
        return True
    if text in ("A", "B", "C", "D") or text[:2] in {f"{letter}{mark}" for letter in "ABCD" for mark in ".)"}:
        return text[0] == answer[0]
    return None


def yes_no(text: str) -> str | None:
    """What the reply begins with, in any case: `None`, `North` and `not sure` are `no`."""
    text = text.lower()
    return "yes" if text.startswith("yes") else "no" if text.startswith("no") else None


def matching(text: str, question: str, answer: str) -> bool | None:
    """Whether the reply is the right option's line, sentence or label; None: no rule matches.

    Args:
        text: The reply.
        question: A line of question, then lines like `Option 1: sentence`.
        answer: The right line.

    Raises:
        IndexError: a line has no `: `.
    """
    lines = question.split("\n")[1:]
    sentences = [line.split(": ")[1] for line in lines]
    labels = [line.split(": ")[0] for line in lines]
    for word in ("Sentence ", "Option ", "Caption "):
        labels += [label.replace(word, "") for label in labels if word in label]
    found = None
    for line in lines:
        found = line if line == text else found
    for sentence in sentences:
        if sentence == text or (") " in text and sentence == text.split(") ")[1]):
            found = sentence
    for label in labels:
        if label in (text, text.replace(".", "")):
            found = label
    if found is None:
        return None
    return (
        found in (answer, answer.split(":", maxsplit=1)[0])
        or found == answer.split(": ")[1]
        or found == answer.split(": ", maxsplit=1)[0].split()[1]
    )


def judged(reply: str) -> bool:
    """What a judge of an answer said.

    Raises:
        ValueError: neither `Correct` nor `Incorrect`.
    """
    if "Correct" not in reply and "Incorrect" not in reply:
        raise ValueError(f"the judge says neither Correct nor Incorrect: {reply!r}")
    return reply.startswith("Correct") or "Incorrect" not in reply


def judged_caption(reply: str, answer: str) -> int:
    """1 if a judge that reads the caption picks `answer`, 0 if another option or several, -1 without a reply."""
    if not reply or reply == "invalid_request_error":
        return -1
    picked = reply
    for line in map(str.strip, reply.split("\n")):
        if "Answer" in line:
            picked = line.replace("Answer:", "").strip()
    options = sum(picked.count(f"{letter}.") for letter in "ABCD")
    return int(picked.split(". ")[0] == answer.split(". ", maxsplit=1)[0] and options == 1)


def _by_rules(text: str, question: Question) -> Scored:
    answer, task = str(question.answer), question.question_type
    if task == "yes_no":
        word = yes_no(text)
        return Scored(float(word == answer.lower()), word, parsed=word is not None)
    if task in ("multi-choice", "multi_choice"):
        right = choice(text, answer)
    elif task == "caption_matching":
        right = matching(text, question.text, answer)
    else:
        raise ValueError(f"question_type {task!r} has no rules; there are multi-choice, yes_no and caption_matching")
    return Scored(float(right or False), text, parsed=right is not None)


def _with_judge(text: str, question: Question) -> Scored:
    """The rules, and for what they do not match the judge's reply."""
    scored = _by_rules(text, question)
    if scored.parsed or question.judgement is None:
        return scored
    try:
        return Scored(float(judged(question.judgement)), question.judgement)
    except ValueError:
        return scored


SOURCE = "EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/tempcompass/utils.py"
RULES = Profile("tempcompass.rules", 1, f"{SOURCE}, the rules before the judge", _by_rules, reads_text=True)
JUDGE = Profile(
    "tempcompass.judge", 1, f"{SOURCE}, the rules, and a judge's reply where none matches", _with_judge, reads_text=True
)
