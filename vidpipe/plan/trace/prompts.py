"""Published prompts over golden vectors: upstream's function names the template, `kwargs` fill its wordings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from vidpipe.benchmarks import prompts
from vidpipe.benchmarks.vsi import CHOICE_TYPES, NUMBER_TYPES
from vidpipe.manifest.row import Row
from vidpipe.plan.prompts import PromptTemplate

Values = Mapping[str, Any]
QUESTIONS = ("question", "query", "caption")
OPTIONS = ("options", "option", "candidates", "choices")
NUMBERED = tuple(f"{name}{n}" for name in ("option", "a") for n in range(5))


def _around(words: Values, kind: str | None = None) -> str:
    after = words.get("post_prompt", "")
    return prompts.around(words.get("pre_prompt", ""), after[kind] if kind else after)


def _before_after(make: Callable[[str, str], str]) -> Callable[[Values], str]:
    return lambda words: make(words.get("pre_prompt", ""), words.get("post_prompt", ""))


def _vsi(words: Values) -> str:
    names = {"pre_prompt": "opening", "mca_post_prompt": "choice", "na_post_prompt": "number"}
    return prompts.vsi(**{names[name]: words[name] for name in names if words.get(name)})


def _revsi(words: Values) -> str:
    return prompts.revsi(words["pre_prompt"], words["mcq_post_prompt"], words["nq_post_prompt"])


def _videomme(words: Values) -> str:
    if words.get("format") == "qwen3_vl":
        return prompts.videomme_qwen3(words["pre_prompt"], words["post_prompt"])
    return prompts.videomme_lmms(words.get("post_prompt", "The best answer is:"))


TEMPLATES: dict[str, Callable[[Values], str | tuple[str, ...]]] = {
    "vsibench_doc_to_text": _vsi,
    "VsiBench.build_prompt": lambda words: prompts.vsi_vlmevalkit(),
    "revsi_doc_to_text": _revsi,
    "videomme_doc_to_text": _videomme,
    "VideoMME.build_prompt": lambda words: prompts.videomme_vlmevalkit(),
    "videommev2_doc_to_text": lambda words: prompts.videomme_v2(reasoning=words.get("reasoning", False)),
    "mvbench_doc_to_text": lambda words: prompts.mvbench(words["post_prompt"]),
    "longvideobench_doc_to_text": _before_after(prompts.lettered),
    "mlvu_doc_to_text": _around,
    "tempcompass_doc_to_text_multi_choice": lambda words: _around(words, "multi-choice"),
    "tempcompass_doc_to_text_yes_no": lambda words: _around(words, "yes_no"),
    "tempcompass_doc_to_text_caption_matching": lambda words: _around(words, "caption_matching"),
    "tempcompass_doc_to_text_captioning": lambda words: _around(words, "captioning"),
    "egoschema_doc_to_text": lambda words: prompts.egoschema(words.get("pre_prompt", "")),
    "timelens_doc_to_text": _around,
    "temporal_grounding_doc_to_text": _before_after(prompts.charades),
    "activitynetqa_doc_to_text": _before_after(prompts.activitynetqa),
    "lvbench_doc_to_text": _before_after(prompts.bracketed),
    "nextqa_doc_to_text_mc": _before_after(prompts.nextqa),
    "videoeval_pro_doc_to_text": _before_after(prompts.videoeval_pro),
    "jumpscore_doc_to_text": _before_after(prompts.jumpscore),
    "mmvu_doc_to_text": lambda words: prompts.mmvu(),
}
"""Upstream's function -> the template of what its task sets."""


def rendered(given: dict[str, Any]) -> dict[str, Any]:
    """`prompts.json`.

    Raises:
        KeyError: the upstream function is none of those here.
        ValueError: VSI-Bench has no such question type.
    """
    function, doc = given["upstream"]["function"], given["doc"]
    if function == "MVBench_dataset.qa_template":
        letter = "ABCDE"[doc["candidates"].index(doc["answer"])]
        return {"value": [_text(prompts.mvbench_official(""), doc), f"({letter}) {doc['answer']}"]}
    if function == "vsibench_doc_to_text" and doc["question_type"] not in (*NUMBER_TYPES, *CHOICE_TYPES):
        raise ValueError(f"unknown question type {doc['question_type']!r}")
    if function == "egoschema_doc_to_text" and "option" not in doc:
        function = "mlvu_doc_to_text"  # without options the task's own words stand around the question
    found = TEMPLATES[function](given.get("kwargs") or {})
    return {"value": _text(found, doc) if isinstance(found, str) else [_text(part, doc) for part in found]}


def _text(template: str, doc: Values) -> str:
    """The template over the document's question and options, whatever they are called there."""
    question = next(doc[name] for name in QUESTIONS if name in doc)
    options: Any = next((doc[name] for name in OPTIONS if doc.get(name)), [])
    if isinstance(options, Mapping):
        options = list(options.values())
    options = options or [doc[name] for name in NUMBERED if doc.get(name) not in (None, "N/A")]
    listed = tuple(options.split("\n")) if isinstance(options, str) else tuple(options)
    row = Row(0, 1, "", (), options=listed, values={"question": question})
    return PromptTemplate(template).user_text(row)
