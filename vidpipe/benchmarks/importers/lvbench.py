"""LVBench: `lmms-lab/LVBench`, 1 549 questions on videos of an hour; their options stand inside the question."""

from __future__ import annotations

from typing import Any

from vidpipe.benchmarks import prompts
from vidpipe.benchmarks.importer import Importer, Record

_NULL = type(None)


def to_row(record: Record, number: int) -> dict[str, Any]:
    """A question has several types; the joined ones are a category, since rows of a type must not count twice."""
    types = record.get("question_type") or []
    return {
        "id": str(record.get("uid") or number),
        "video": record["video_path"],
        "question": record["question"],
        "answer": record["answer"],
        "answer_type": "choice",
        "categories": {"question_type": ", ".join(types) if isinstance(types, list) else types},
    }


IMPORTER = Importer(
    name="lvbench",
    profile="lvbench.ov2",
    columns={
        "uid": (str, int, _NULL),
        "video_path": (str,),
        "question": (str,),
        "answer": (str,),
        "question_type": (list, str, _NULL),
    },
    row=to_row,
    prompt=prompts.bracketed(),
    prompt_source="EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/lvbench/utils.py, lvbench_doc_to_text",
    max_tokens=16,
)
