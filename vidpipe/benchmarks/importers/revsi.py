"""ReVSI: `3dlg-hcvc/ReVSI`, config `16_frame`, `32_frame` or `64_frame`.

Its videos hold exactly the frames that a model is to see, so every row asks for as many. Records
have no id that all files share; the record's number serves where there is none.
"""

from __future__ import annotations

from typing import Any

from vidpipe.benchmarks.importer import Importer, Record, meta

COLUMNS: dict[str, tuple[type, ...]] = {
    "scene_id": (str,),
    "num_frames": (int,),
    "question_type": (str,),
    "question": (str,),
    "options": (list, type(None)),
    "ground_truth": (str,),
    "id": (int, str, type(None)),
}
PROMPT = """\
These are frames of a video.
{{ question }}
{% if options %}Options:
{{ options | join("\\n") }}
Answer with the option's letter from the given choices directly.\
{% else %}Answer the question using a single integer or decimal number.{% endif %}"""


def to_row(record: Record, number: int) -> dict[str, Any]:
    """A published record as a row."""
    identity = record.get("id")
    row: dict[str, Any] = {
        "id": str(number if identity is None else identity),
        "video": f"{record['num_frames']}_frame/{record['scene_id']}.mp4",
        "clip_id": record["scene_id"],
        "question_type": record["question_type"],
        "question": record["question"],
        "answer": record["ground_truth"],
        "answer_type": "choice" if record.get("options") else "number",
        "sampling": {"num_frames": record["num_frames"]},
        "scorer": IMPORTER.profile,
    }
    if record.get("options"):
        row["options"] = record["options"]
    if rest := meta(record, COLUMNS):
        row["meta"] = rest
    return row


IMPORTER = Importer(
    name="revsi",
    profile="revsi.lmms_main",
    columns=COLUMNS,
    row=to_row,
    prompt=PROMPT,
    prompt_source="EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/revsi/utils.py, revsi_doc_to_text",
    max_tokens=16,
)
