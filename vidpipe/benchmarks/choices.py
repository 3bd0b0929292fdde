"""Reading an option's letter as the harnesses of multiple-choice video benchmarks do it, oddities included."""

from __future__ import annotations

import re
from collections.abc import Sequence

ANSWER_IS = ("The best answer is", "The correct answer is", "The answer is", "The answer")
JOINED = ("The best option isThe correct option is", "Best answer:Best option:")
"""Two commas are missing upstream, so these four prefixes are two, which no reply contains."""
OV2_PREFIXES = (*ANSWER_IS, *JOINED)
"""lmms-eval @3997a60 (llava-onevision2), lmms_eval/tasks/{videomme,lvbench}/utils.py, extract_characters_regex."""
VIDEOMME_PREFIXES = (*OV2_PREFIXES, "Answer:", "Option:")
"""thanku-all/parse_answer @afd52cf, eval_your_results.py, extract_characters_regex."""
LONGVIDEOBENCH_PREFIXES = (
    *ANSWER_IS,
    "The best option is",
    "The correct option is",
    "Best answer:",
    "Best option:",
)
"""lmms-eval @75571cf, lmms_eval/tasks/longvideobench/utils.py, parse_multi_choice_response."""
V2_PREFIXES = ("Final Answer:", *LONGVIDEOBENCH_PREFIXES, "Answer:", "Option:")
"""lmms-eval @3997a60, lmms_eval/tasks/videommev2/utils.py, _extract_answer."""


def first_capital(text: str, letters: str, prefixes: Sequence[str]) -> str | None:
    """The first of `letters` anywhere in the reply, once each prefix is cut out wherever it stands.

    So `Based on ...` is B, and lower case is nothing.
    """
    text = text.strip()
    for prefix in prefixes:
        text = text.replace(prefix, "")
    return next((character for character in text if character in letters), None)


def any_case(text: str, letters: str) -> str | None:
    """The first of `letters` in any case: `The answer is B` is E.

    lmms-eval @3997a60, lmms_eval/tasks/videoeval_pro/utils.py, videoeval_pro_process_results.
    """
    return next((character.upper() for character in text.strip() if character.upper() in letters), None)


def before_bracket(text: str) -> str:
    """The character before the first `)`, or the whole reply where there is none.

    JUNJIE99/MLVU @fd060c1, evaluation/multiple_choice_evaluation/choice_bench.py, check_ans.
    """
    place = text.find(")")
    return text if place < 0 else text[max(place - 1, 0) : place]


_PHRASES = tuple(
    [f"{before}answer is" for before in ("", "the ", "correct ", "the correct ", "best ", "the best ", "my ")]
    + [f"{before}{kind} option is" for before in ("", "the ") for kind in ("correct", "best")]
    + [f"{before}choice is" for before in ("", "the ", "correct ", "the correct ", "my ")]
    + ["i choose", "i select", "i pick"]
    + ["\uc635\uc158", "\uc815\ub2f5\uc740", "\ub2f5\uc740", "\ub2f5:"]
    + ["\u7b54\u6848\u662f", "\u7b54\u6848\u4e3a", "\u9009", "\u7b54\u3048\u306f"]
)
"""Of each the first mention counts, so a longer one can stand behind the first `answer is`."""
_FOLLOWERS = (("({})", 6), ("{}.", 5), ("{}:", 4), ("{})", 3), ("{} ", 2))


def ranked(text: str, letters: str) -> str | None:
    """The letter in the form that says most; of equal forms the last one in the reply.

    Equal to lmms-eval @75571cf, lmms_eval/tasks/_task_utils/mcq_extract.py, extract_mcq_answer:
    a letter at the start goes before one at the end, then behind `answer is`, in brackets,
    before a full stop, a colon, a bracket, a space; else any letter at all.
    """
    if not text.strip():
        return None
    text = text.strip()
    for mark in ",.!?;:'\"":
        text = text.strip(mark)
    bare = text.strip()
    text = f" {text} "
    found: list[tuple[int, int, str]] = []
    for letter in letters:
        for form, rank in _FOLLOWERS:
            if (place := text.rfind(form.format(letter))) >= 0:
                found.append((rank, place, letter))
        for phrase in _PHRASES:
            start = text.lower().find(phrase)
            if start >= 0 and (place := text.find(letter, start + len(phrase))) >= 0:
                found.append((7, place, letter))
        if bare.startswith(letter) and not bare[1:2].isalpha():
            found.append((10, 0, letter))
        if bare.endswith(letter) and not bare[-2:-1].isalpha():
            found.append((9, 0, letter))
    if not found:
        found = [(0, text.rfind(letter), letter) for letter in letters if letter in text]
    return max(found, key=lambda one: one[:2])[2] if found else None


_LABEL = re.compile(r"([A-E])\.\s*.+$", re.IGNORECASE)
_STANDALONE = re.compile(r"\b([A-E])\b", re.IGNORECASE)
_MARKS = ';/[]"{}()=+\\_-><@`,?!'


def standalone_letter(text: str) -> str | None:
    """The letter of `X. text`, else the first one from A to E that stands alone in any case: `a man` is A.

    lmms-eval @75571cf, lmms_eval/tasks/mvbench/utils.py, mcq_acc.
    """
    if label := _LABEL.match(text.strip()):
        return str(label.group(1)).upper()
    text = text.replace("\n", " ").replace("\t", " ").strip()
    plain = text
    grouped = re.search(r"\d,\d", text) is not None
    for mark in _MARKS:
        beside_space = f"{mark} " in text or f" {mark}" in text
        plain = plain.replace(mark, "" if beside_space or grouped else " ")
    plain = re.sub(r"\.(?!\d)", "", plain, count=32)
    match = _STANDALONE.search(plain)
    return str(match.group(1)).upper() if match else None


def first_word_in(text: str, option: str) -> bool:
    """Whether the reply's first word is part of `(x)`, or `(x)` of it; an empty reply passes.

    OpenGVLab/Ask-Anything @4dd8210, video_chat2/mvbench.ipynb, check_ans.

    Args:
        text: The reply.
        option: The right option as shown, `(A) text`.
    """
    word, label = text.lower().split(" ")[0], option.lower().split(" ")[0]
    return word.replace(".", "") in label or label in word
