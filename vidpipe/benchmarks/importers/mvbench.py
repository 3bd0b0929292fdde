"""MVBench: `OpenGVLab/MVBench`, one of its twenty JSON files, named after its task.

Records of some tasks have bounds in seconds (`start`, `end`) into whole videos, which become
the clip window. `video` stands as published: --media-root is the task's own folder of videos.
Files that were cut beforehand have other names; take the bounds out of their records.
"""

from __future__ import annotations

from typing import Any

from vidpipe.benchmarks.importer import Importer, Record, meta

_NULL = type(None)
COLUMNS: dict[str, tuple[type, ...]] = {
    "video": (str,),
    "question": (str,),
    "candidates": (list,),
    "answer": (str,),
    "start": (int, float, _NULL),
    "end": (int, float, _NULL),
    "task": (str,),
}
PROMPT = """\
Question:{{ question }}
Option:
{% for option in options %}({{ "ABCDE"[loop.index0] }}) {{ option }}
{% endfor %}Only give the best option.
"""


def to_row(record: Record, number: int) -> dict[str, Any]:
    """A published record as a row; ids are the task and the record's number."""
    row: dict[str, Any] = {
        "id": f"{record['task']}-{number}",
        "video": record["video"],
        "question_type": record["task"],
        "question": record["question"],
        "options": record["candidates"],
        "answer": record["answer"],
        "answer_type": "choice_text",
        "categories": {"task": record["task"]},
        "scorer": IMPORTER.profile,
    }
    if record.get("end") is not None:
        row |= {"clip_start": record.get("start") or 0, "clip_end": record["end"]}
    if rest := meta(record, COLUMNS):
        row["meta"] = rest
    return row


IMPORTER = Importer(
    name="mvbench",
    profile="mvbench.lmms_main",
    columns=COLUMNS,
    row=to_row,
    prompt=PROMPT,
    prompt_source="EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/mvbench/utils.py, mvbench_doc_to_text",
    max_tokens=16,
    from_file_name="task",
)
