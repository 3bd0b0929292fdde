"""Multiple-choice benchmarks whose headline is a plain accuracy: who reads the letter how.

Where a harness draws a random option for a reply that it cannot read, or leaves such rows out
of the average, these profiles count them as wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vidpipe.benchmarks.choices import (
    LONGVIDEOBENCH_PREFIXES,
    OV2_PREFIXES,
    V2_PREFIXES,
    VIDEOMME_PREFIXES,
    any_case,
    before_bracket,
    first_capital,
    first_word_in,
    ranked,
    standalone_letter,
)
from vidpipe.benchmarks.profile import Profile, Question, Scored
from vidpipe.manifest.answers import LETTERS

LMMS, OV2 = "EvolvingLMMs-Lab/lmms-eval @75571cf", "EvolvingLMMs-Lab/lmms-eval @3997a60"


def right_letter(question: Question) -> str:
    """The letter of the right option, which is given as a letter, an index from 0, or the option's text.

    Raises:
        ValueError: the answer is none of the options.
    """
    answer, kind = question.answer, question.answer_type
    if kind == "choice_index" or (kind is None and isinstance(answer, int)):
        return _letter_at(answer)  # from CSV an index comes as text
    if kind != "choice" and answer in question.options:
        return LETTERS[question.options.index(answer)]
    if isinstance(answer, str) and len(answer.strip()) == 1 and answer.strip().upper() in LETTERS:
        return answer.strip().upper()
    raise ValueError(f"answer {answer!r} is none of the options {list(question.options)}")


def _letter_at(index: Any) -> str:
    place = int(index)
    if not 0 <= place < len(LETTERS):
        raise ValueError(f"answer {index!r} is no index of an option, counted from 0")
    return LETTERS[place]


def by_letter(read: Callable[[str], str | None]) -> Callable[[str, Question], Scored]:
    """A rule: the letter that `read` finds is the right one."""

    def rule(text: str, question: Question) -> Scored:
        letter = read(text)
        return Scored(float(letter == right_letter(question)), letter, parsed=letter is not None)

    return rule


def videomme_letter(text: str) -> str | None:
    """thanku-all/parse_answer @afd52cf, eval_your_results.py, extract_characters_regex; VLMEvalKit has the same."""
    return first_capital(text, "ABCD", VIDEOMME_PREFIXES)


def ov2_letter(text: str) -> str | None:
    """The same idea with fewer prefixes: `Answer: B` is A."""
    return first_capital(text, "ABCD", OV2_PREFIXES)


def longvideobench_letter(text: str) -> str | None:
    """Where upstream draws a random option: None."""
    return first_capital(text, "ABCDE", LONGVIDEOBENCH_PREFIXES)


def longvideobench_vlmevalkit(text: str) -> str | None:
    """VLMEvalKit @e8e78f0, vlmeval/dataset/utils/longvideobench.py, extract_characters_regex."""
    return first_capital(text, "ABCDE", VIDEOMME_PREFIXES)


def videomme_v2_letter(text: str) -> str | None:
    """Eight options."""
    return first_capital(text, "ABCDEFGH", V2_PREFIXES)


def mlvu_letter(text: str) -> str | None:
    """Official, on the stripped reply as the llava-onevision2 branch has it; None unless one character is left."""
    found = before_bracket(text.strip())
    return found if len(found) == 1 else None


def _mvbench_official(text: str, question: Question) -> Scored:
    """The prompt ends in `Best option:(`, so the reply goes on behind a bracket; an empty one is wrong here."""
    letter = right_letter(question)
    reply = text.strip().split("\n")[0]
    option = f"({letter}) {question.answer}"
    return Scored(float(bool(reply) and first_word_in(f"({reply}", option)), reply or None, parsed=bool(reply))


def _profile(name: str, source: str, read: Callable[[str], str | None]) -> Profile:
    return Profile(name, 1, source, by_letter(read))


VIDEOMME_OFFICIAL = _profile(
    "videomme.official",
    "thanku-all/parse_answer @afd52cf, eval_your_results.py; unread replies are wrong, not left out",
    videomme_letter,
)
VIDEOMME_LMMS = _profile(
    "videomme.lmms_main", f"{LMMS}, lmms_eval/tasks/_task_utils/mcq_extract.py", lambda text: ranked(text, "ABCD")
)
VIDEOMME_OV2 = _profile("videomme.ov2", f"{OV2}, lmms_eval/tasks/videomme/utils.py", ov2_letter)
LVBENCH_OV2 = _profile("lvbench.ov2", f"{OV2}, lmms_eval/tasks/lvbench/utils.py", ov2_letter)
VIDEOEVAL_PRO_OV2 = _profile(
    "videoeval_pro.ov2", f"{OV2}, lmms_eval/tasks/videoeval_pro/utils.py", lambda text: any_case(text, "ABCDE")
)
LONGVIDEOBENCH_LMMS = _profile(
    "longvideobench.lmms_main",
    f"{LMMS}, lmms_eval/tasks/longvideobench/utils.py; no random options",
    longvideobench_letter,
)
MVBENCH_TASKS = (
    "action_sequence",
    "action_prediction",
    "action_antonym",
    "fine_grained_action",
    "unexpected_action",
    "object_existence",
    "object_interaction",
    "object_shuffle",
    "moving_direction",
    "action_localization",
    "scene_transition",
    "action_count",
    "moving_count",
    "moving_attribute",
    "state_change",
    "fine_grained_pose",
    "character_order",
    "egocentric_navigation",
    "episodic_reasoning",
    "counterfactual_inference",
)
"""Each weighs the same: upstream's group defines no mean, and tasks have about as many rows."""
MVBENCH_LMMS = Profile(
    "mvbench.lmms_main",
    1,
    f"{LMMS}, lmms_eval/tasks/mvbench/utils.py, mcq_acc; empty replies are wrong, not left out; mean over the tasks",
    by_letter(standalone_letter),
    {task: (task,) for task in MVBENCH_TASKS},
)
MVBENCH_OFFICIAL = Profile(
    "mvbench.official",
    1,
    "OpenGVLab/Ask-Anything @4dd8210, video_chat2/mvbench.ipynb, check_ans; an empty reply (there: right) is wrong",
    _mvbench_official,
    {task: (task,) for task in MVBENCH_TASKS},
)
MLVU_TASKS = ("anomaly_reco", "count", "ego", "needle", "order", "plotQA", "topic_reasoning")
MLVU_OFFICIAL = Profile(
    "mlvu.official",
    1,
    "JUNJIE99/MLVU @fd060c1, choice_bench.py, check_ans; replies stripped as in lmms-eval @3997a60",
    by_letter(mlvu_letter),
    {task: (task,) for task in MLVU_TASKS},
)
