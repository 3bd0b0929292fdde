"""MLVU, dev: one of the official multiple-choice files, `1_plotQA.json` to `7_topic_reasoning.json`.

The file's name is the task (the records' own `question_type` says `findNeedle` for needle) and the
folder of its videos. The prompt ends in `Best option: (` as user text, as lmms-eval has it; the official
code writes that into the model's turn.
"""

from __future__ import annotations

from typing import Any

from vidpipe.benchmarks.importer import Importer, Record, meta

COLUMNS: dict[str, tuple[type, ...]] = {
    "video": (str,),
    "question": (str,),
    "candidates": (list,),
    "answer": (str,),
    "file": (str,),
}
PROMPT = """\
{{ question }}
{% for option in options %}({{ "ABCDEF"[loop.index0] }}) {{ option }}
{% endfor %}Only give the best option.
Best option: ("""


def to_row(record: Record, number: int) -> dict[str, Any]:
    """A published record as a row; ids are the task and the record's number."""
    task = record["file"].lstrip("0123456789_")
    row: dict[str, Any] = {
        "id": f"{task}-{number}",
        "video": f"{record['file']}/{record['video']}",
        "question_type": task,
        "question": record["question"],
        "options": record["candidates"],
        "answer": record["answer"],
        "answer_type": "choice_text",
        "scorer": IMPORTER.profile,
    }
    if rest := meta(record, COLUMNS):
        row["meta"] = rest
    return row


IMPORTER = Importer(
    name="mlvu",
    profile="mlvu.official",
    columns=COLUMNS,
    row=to_row,
    prompt=PROMPT,
    prompt_source="EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/mlvu/utils.py, mlvu_doc_to_text",
    max_tokens=16,
    from_file_name="file",
)
