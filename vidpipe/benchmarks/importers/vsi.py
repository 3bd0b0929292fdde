"""VSI-Bench: `nyu-visionx/VSI-Bench`, split `test`, 5 130 questions on 288 scans.

Videos are `<dataset>/<scene_name>.mp4` from the repository's three zip files. The
prompt is that of the official harness and of LLaVA-OneVision-2's published numbers.
"""

from __future__ import annotations

from typing import Any

from vidpipe.benchmarks.importer import Importer, Record, meta

_NULL = type(None)
COLUMNS: dict[str, tuple[type, ...]] = {
    "id": (int, str),
    "dataset": (str,),
    "scene_name": (str,),
    "question_type": (str,),
    "question": (str,),
    "ground_truth": (str,),
    "options": (list, _NULL),
    "pruned": (bool, _NULL),
}
PROMPT = """\
These are frames of a video.
{{ question }}
{% if options %}Options:
{{ options | join("\\n") }}
Answer with the option's letter from the given choices directly.\
{% else %}Please answer the question using a single word or phrase.{% endif %}"""


def to_row(record: Record, number: int) -> dict[str, Any]:
    """A published record as a row; `number` is not used, records have ids."""
    scene = f"{record['dataset']}/{record['scene_name']}"
    categories = {"dataset": record["dataset"]}
    if record.get("pruned") is not None:
        categories["pruned"] = str(record["pruned"]).lower()
    row: dict[str, Any] = {
        "id": str(record["id"]),
        "video": f"{scene}.mp4",
        "clip_id": scene,
        "question_type": record["question_type"],
        "question": record["question"],
        "answer": record["ground_truth"],
        "answer_type": "choice" if record.get("options") else "number",
        "categories": categories,
        "scorer": IMPORTER.profile,
    }
    if record.get("options"):
        row["options"] = record["options"]
    if rest := meta(record, COLUMNS):
        row["meta"] = rest
    return row


IMPORTER = Importer(
    name="vsi",
    profile="vsi.official",
    columns=COLUMNS,
    row=to_row,
    prompt=PROMPT,
    prompt_source="vision-x-nyu/thinking-in-space @51e089c, lmms_eval/tasks/vsibench/utils.py, vsibench_doc_to_text",
    max_tokens=16,
    subsets={"debiased": lambda record: not record["pruned"], "pruned": lambda record: bool(record["pruned"])},
)
