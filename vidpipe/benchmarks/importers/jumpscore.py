"""JumpScore: `lmms-lab-encoder/JumpScore`; the answer is a list of times such as `["1.20s"]`, as JSON text."""

from __future__ import annotations

from typing import Any

from vidpipe.benchmarks import prompts
from vidpipe.benchmarks.importer import Importer, Record


def to_row(record: Record, number: int) -> dict[str, Any]:
    """`number` is not used, records have ids."""
    return {
        "id": str(record["id"]),
        "video": f"videos/{record['video_path'].removeprefix('videos/')}",
        "question": record["question"],
        "answer": record["answer"],
        "answer_type": "times",
    }


IMPORTER = Importer(
    name="jumpscore",
    profile="jumpscore.ov2",
    columns={"id": (str, int), "video_path": (str,), "question": (str,), "answer": (str, list)},
    row=to_row,
    prompt=prompts.jumpscore(),
    prompt_source="EvolvingLMMs-Lab/lmms-eval @3997a60, lmms_eval/tasks/jumpscore/utils.py, jumpscore_doc_to_text",
    max_tokens=1024,
)
