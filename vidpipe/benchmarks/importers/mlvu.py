"""MLVU, dev: the official multiple-choice files `1_plotQA.json` to `7_topic_reasoning.json`, or `sy1998/MLVU_dev`.

--src is one file or the folder of all seven, which M-Avg needs. An official file's name is the task (the records' own
`question_type` says `findNeedle` for needle) and the folder of its videos; the Hub's records have a `task_type`, and
their options inside the question. The prompt ends in `Best option: (` as user text, as lmms-eval has it; the official
code writes that into the model's turn.
"""

from __future__ import annotations

from typing import Any

from vidpipe.benchmarks import prompts
from vidpipe.benchmarks.importer import Importer, Record

_NULL = type(None)


def to_row(record: Record, number: int) -> dict[str, Any]:
    """Ids are the task and the record's number where the file has none."""
    task = record.get("task_type") or record["file"].lstrip("0123456789_")
    return {
        "id": str(record.get("question_id") or f"{task}-{number}"),
        "video": record.get("video_name") or f"{record['file']}/{record['video']}",
        "question_type": task,
        "question": record["question"],
        "options": record.get("candidates"),
        "answer": record["answer"],
        "answer_type": "choice_text" if record.get("candidates") else "choice",
    }


IMPORTER = Importer(
    name="mlvu",
    profile="mlvu.official",
    columns={
        "video": (str, _NULL),
        "video_name": (str, _NULL),
        "question": (str,),
        "candidates": (list, _NULL),
        "answer": (str,),
        "file": (str,),
        "task_type": (str, _NULL),
        "question_id": (str, int, _NULL),
    },
    row=to_row,
    prompt=prompts.mlvu(),
    prompt_source="EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/mlvu/utils.py, mlvu_doc_to_text",
    max_tokens=16,
    from_file_name="file",
)
