"""The wordings of published prompts, as Jinja2 templates for a recipe's `prompt`.

A score belongs to a wording as much as to a scorer: the same benchmark is asked in up to four ways. Each
function takes what its harness lets a task set and gives a template over a row's `question` and `options`.
Unless said otherwise the sources are the `*_doc_to_text` functions of EvolvingLMMs-Lab/lmms-eval @75571cf,
lmms_eval/tasks/<benchmark>/utils.py; its branch llava-onevision2 (@3997a60) asks in the same words.
"""

from __future__ import annotations

from vidpipe.errors import CapabilityError

FRAMES = "These are frames of a video."
LETTER = "Answer with the option's letter from the given choices directly."
WORD = "Please answer the question using a single word or phrase."
AS_PUBLISHED = '{{ options | join("\\n") }}'
_LABEL = '{{ "ABCDEFGHIJ"[loop.index0] }}'


def _listed(line: str) -> str:
    """Each option behind a line break."""
    return f"{{% for option in options %}}\n{line}{{% endfor %}}"


DOTTED = _listed(f"{_LABEL}. {{{{ option }}}}")
BRACKETED = _listed(f"({_LABEL}) {{{{ option }}}}")
VIDEOMME_TASK = (
    "Select the best answer to the following multiple-choice question based on the video{}. "
    "Respond with only the letter (A, B, C, or D) of the correct option.\n"
)


def around(before: str = "", after: str = "") -> str:
    """Words on both sides of the question: TempCompass, TimeLens, MLVU (options are inside)."""
    return f"{before}{{{{ question }}}}{after}"


def vsi(opening: str = FRAMES, choice: str = LETTER, number: str = WORD, *, heading: str = "Options:\n") -> str:
    """VSI-Bench, official and lmms-eval; VLMEvalKit (@e8e78f0) has no heading and always asks for a float."""
    return (
        f"{opening}\n{{{{ question }}}}\n"
        f"{{% if options %}}{heading}{AS_PUBLISHED}\n{choice}{{% else %}}{number}{{% endif %}}"
    )


def vsi_vlmevalkit() -> str:
    """VLMEvalKit @e8e78f0, vlmeval/dataset/vsibench.py, VsiBench.build_prompt."""
    return vsi(number="Answer briefly and directly in one float number.", heading="")


def revsi(opening: str = FRAMES, choice: str = LETTER, number: str = "") -> str:
    """ReVSI."""
    return vsi(opening, choice, number or "Answer the question using a single integer or decimal number.")


def videomme(ending: str = "The best answer is:", *, subtitles: str = "") -> str:
    """Video-MME's own page (MME-Benchmarks/Video-MME @06c2315, README).

    Args:
        ending: Last line.
        subtitles: ` and the subtitles` in lmms-eval, also where there are none.
    """
    return f"{VIDEOMME_TASK.format(subtitles)}{{{{ question }}}}\n{AS_PUBLISHED}\n{ending}"


def videomme_lmms(ending: str = f"\n{LETTER}") -> str:
    """lmms-eval's words, with a blank line before the ending."""
    return videomme(ending, subtitles=" and the subtitles")


def videomme_ov2() -> str:
    """The tasks behind LLaVA-OneVision-2's numbers: lmms-eval @3997a60, lmms_eval/tasks/ov2/*.yaml."""
    return videomme_lmms("\nAnswer the question using a single word or phrase.")


def videomme_qwen3(before: str = "Question: ", after: str = "Answer with the option letter only.") -> str:
    """`videomme_doc_to_text_qwen3vl`."""
    return f"{before}{{{{ question }}}}\nOptions:\n{AS_PUBLISHED}\n{after}"


def videomme_vlmevalkit() -> tuple[str, str, str]:
    """VLMEvalKit @e8e78f0, vlmeval/dataset/videomme.py, VideoMME.build_prompt: three parts of a message."""
    task = f"\nThese are the frames of a video. {VIDEOMME_TASK.format('')}"
    return "", task, f"Question: {{{{ question }}}}\n{AS_PUBLISHED}\nAnswer: "


def videomme_v2(*, reasoning: bool = False, subtitles: bool = False) -> str:
    """lmms-eval @3997a60, lmms_eval/tasks/videommev2/utils.py, videommev2_doc_to_text.

    Args:
        reasoning: Ask for reasoning first.
        subtitles: Say that subtitles stand between the frames (`videommev2_doc_to_messages_interleaved_subtitle`).
    """
    seen = (
        "These are the frames of a video with corresponding subtitles shown between frames. The subtitles indicate "
        "what is being said during the time interval between adjacent frames."
        if subtitles
        else "These are the frames of a video."
    )
    task = (
        "Please perform a detailed reasoning based on the provided video frames to answer the following multiple-"
        "choice question selecting the best option from A through H and providing your final response strictly in the "
        "format: 'Final Answer: <letter>."
        if reasoning
        else "Select the best answer to the following multiple-choice question based on the video. Respond with only "
        "the letter (A, B, C, D, E, F, G, or H) of the correct option."
    )
    return f"{seen}\n{task}\nQuestion: {{{{ question }}}}\n{AS_PUBLISHED}"


def mvbench(ending: str = "Only give the best option.\n") -> str:
    """MVBench in lmms-eval, without the official system text and beginning of the answer."""
    return f"Question:{{{{ question }}}}\nOption:{BRACKETED}\n{ending}"


MVBENCH_SYSTEM = (
    "Carefully watch the video and pay attention to the cause and sequence of events, the detail and movement of "
    "objects, and the action and pose of persons. Based on your observations, select the best option that accurately "
    "addresses the question.\n"
)
MVBENCH_PREFILL = "Best option:("


def mvbench_official(ending: str = "\nOnly give the best option.") -> str:
    """OpenGVLab/Ask-Anything @4dd8210, video_chat2/mvbench.ipynb: qa_template and what is put behind it."""
    return f"Question: {{{{ question }}}}\nOptions:{BRACKETED}{ending}"


def lettered(before: str = "", after: str = f"{LETTER}\n") -> str:
    """LongVideoBench (`val_v`): options are texts, which get letters."""
    return f"{before}{{{{ question }}}}{DOTTED}\n{after}"


def nextqa(before: str = "", after: str = "") -> str:
    """NExT-QA, multiple choice: the question, its options, and nothing that says what to do with them."""
    return f"{before}{{{{ question | trim }}}}{_listed(f'{_LABEL}. {{{{ option | trim }}}}')}{after}"


def egoschema(before: str = "", ending: str = f"\n{LETTER}") -> str:
    """EgoSchema; where a question has options the ending is this one, whatever the task sets."""
    return f"{before}{{{{ question }}}}{_listed('{{ option }}')}{ending}"


def videoeval_pro(before: str = "", after: str = f"\n{LETTER}") -> str:
    """VideoEval-Pro, lmms-eval @3997a60, lmms_eval/tasks/videoeval_pro/utils.py."""
    return f"{before}{{{{ question }}}}\n{AS_PUBLISHED}{after}"


def activitynetqa(before: str = "", after: str = " Answer the question using a single word or phrase.") -> str:
    """ActivityNet-QA: the question's first letter made large, all others small."""
    return f"{before}{{{{ question | capitalize }}}}?{after}"


CHARADES_BEFORE = (
    "Please find the visual event described by a sentence in the video, determining its starting and ending times. "
    "The format should be: 'The event happens in the start time - end time'. For example, The event 'person turn a "
    "light on' happens in the 24.3 - 30.4 seonds. Now I will give you the textual sentence: "
)
"""With upstream's misspelt word: changing it would be another prompt."""


def charades(before: str = CHARADES_BEFORE, after: str = "Please return its start time and end time.") -> str:
    """Charades-STA; a caption that ends in a full stop gets a second one."""
    return f"{before}{{{{ question }}}}. {after}"


def timelens() -> str:
    """TimeLens."""
    return around(
        "Please find the visual event described by the sentence '",
        "', determining its starting and ending times. The format should be: "
        "'The event happens in <start time> - <end time> seconds'.",
    )


def bracketed(before: str = "", after: str = "\nAnswer the question with the option letter") -> str:
    """LVBench and MLVU: most published questions have their options inside, others get these lines."""
    return f"{before}{{{{ question }}}}{BRACKETED}{after}"


def mlvu() -> str:
    """MLVU's dev set; the official code writes the last line into the model's turn."""
    return bracketed("", "\nOnly give the best option.\nBest option: (")


TEMPCOMPASS_AFTER = {
    "multi-choice": "\nPlease directly give the best option:",
    "yes_no": "\nPlease answer yes or no:",
    "caption_matching": "\nPlease directly give the best option:",
    "captioning": "",
}
"""TempCompass: what stands behind the question of each task."""


def tempcompass() -> str:
    """TempCompass, by the row's question type."""
    cases = [(task, after) for task, after in TEMPCOMPASS_AFTER.items() if after]
    return around("", "".join(f"{{% if question_type == '{task}' %}}{after}{{% endif %}}" for task, after in cases))


def jumpscore(before: str = "", after: str = "") -> str:
    """JumpScore, lmms-eval @3997a60, lmms_eval/tasks/jumpscore/utils.py: the question says everything."""
    return f"{before}{{{{ question | trim }}}}{after}"


def mmvu() -> str:
    """MMVU, without reasoning."""
    options = _listed(f"{_LABEL}: {{{{ option }}}}")
    task = "Do not generate any intermediate reasoning process. "
    choice = "Answer directly with the option letter from the\ngiven choices."
    return (
        f"\nQuestion:{{{{ question }}}}{options}\nVisual Information: processed video\n"
        f"{task}{{% if options %}}{choice}{{% else %}}Directly output the final answer.{{% endif %}}\n"
    )


TEMPLATES: dict[str, str] = {
    "activitynetqa.lmms_main": activitynetqa(),
    "charades.lmms_main": charades(),
    "egoschema.lmms_main": egoschema(),
    "jumpscore.ov2": jumpscore(),
    "longvideobench.lmms_main": lettered(),
    "lvbench.lmms_main": bracketed(),
    "mlvu.lmms_main": mlvu(),
    "mmvu.lmms_main": mmvu(),
    "mvbench.lmms_main": mvbench(),
    "mvbench.official": mvbench_official(),
    "nextqa.lmms_main": nextqa(),
    "revsi.lmms_main": revsi(),
    "tempcompass.lmms_main": tempcompass(),
    "timelens.lmms_main": timelens(),
    "videoeval_pro.ov2": videoeval_pro(),
    "videomme.lmms_main": videomme_lmms(),
    "videomme.official": videomme(),
    "videomme.ov2": videomme_ov2(),
    "videomme.qwen3_vl": videomme_qwen3(),
    "videomme_v2.ov2": videomme_v2(),
    "videomme_v2.ov2_subtitles": videomme_v2(subtitles=True),
    "vsi.official": vsi(),
    "vsi.vlmevalkit": vsi_vlmevalkit(),
}
"""Published wordings that a recipe or a row can name as its `template`."""


def get_template(name: str) -> str:
    """The wording of that name.

    Raises:
        CapabilityError: there is none.
    """
    if name not in TEMPLATES:
        raise CapabilityError(f"template {name!r} is not known. Choose one of: {', '.join(TEMPLATES)}.")
    return TEMPLATES[name]
