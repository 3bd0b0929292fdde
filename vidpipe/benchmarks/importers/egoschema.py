"""EgoSchema: `lmms-lab/egoschema`, config Subset, the 500 of 5 031 questions whose answers are public.

Rows of the whole set have no answer: they run and are counted as unscored.
"""

from __future__ import annotations

from typing import Any

from vidpipe.benchmarks.importer import Importer, Record, meta

COLUMNS: dict[str, tuple[type, ...]] = {
    "question_idx": (str, int),
    "video_idx": (str,),
    "question": (str,),
    "option": (list,),
    "answer": (str, int, type(None)),
}
PROMPT = """\
{{ question }}
{{ options | join("\\n") }}
Answer with the option's letter from the given choices directly."""


def to_row(record: Record, number: int) -> dict[str, Any]:
    """A published record as a row; its answer is an index from 0, as text."""
    row: dict[str, Any] = {
        "id": str(record["question_idx"]),
        "video": f"videos/{record['video_idx']}.mp4",
        "clip_id": record["video_idx"],
        "question": record["question"],
        "options": record["option"],
        "answer_type": "choice_index",
        "scorer": IMPORTER.profile,
    }
    if record.get("answer") not in (None, ""):
        row["answer"] = int(record["answer"])
    if rest := meta(record, COLUMNS):
        row["meta"] = rest
    return row


IMPORTER = Importer(
    name="egoschema",
    profile="egoschema.lmms_main",
    columns=COLUMNS,
    row=to_row,
    prompt=PROMPT,
    prompt_source="EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/egoschema/utils.py",
    max_tokens=16,
)
