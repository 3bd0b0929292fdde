"""VideoEval-Pro: `TIGER-Lab/VideoEval-Pro`, 1 289 questions, with their options as for LLaVA-OneVision-2."""

from __future__ import annotations

from typing import Any

from vidpipe.benchmarks import prompts
from vidpipe.benchmarks.importer import Importer, Record

CATEGORIES = ("qa_type", "qa_subtype", "source")


def to_row(record: Record, number: int) -> dict[str, Any]:
    """Ids are the record's number."""
    return {
        "id": str(number),
        "video": f"videos_filtered/{record['video']}",
        "question_type": record["qa_type"],
        "question": record["question"],
        "options": record["options"],
        "answer": record["answer"],
        "answers": [record["answer_text"]],
        "answer_type": "choice",
        "categories": {name: record[name] for name in CATEGORIES},
    }


IMPORTER = Importer(
    name="videoeval_pro",
    profile="videoeval_pro.ov2",
    columns={
        "video": (str,),
        "question": (str,),
        "options": (list,),
        "answer": (str,),
        "answer_text": (str,),
        **dict.fromkeys(CATEGORIES, (str,)),
    },
    row=to_row,
    prompt=prompts.videoeval_pro(),
    prompt_source="EvolvingLMMs-Lab/lmms-eval @3997a60, lmms_eval/tasks/videoeval_pro/utils.py",
    max_tokens=16,
)
