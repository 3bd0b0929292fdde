"""VSI-Bench: `nyu-visionx/VSI-Bench`, split `test`, 5 130 questions on 288 scans.

Videos are `<dataset>/<scene_name>.mp4` from the repository's three zip files. The
prompt is that of the official harness and of LLaVA-OneVision-2's published numbers.
"""

from __future__ import annotations

from typing import Any

from vidpipe.benchmarks import prompts
from vidpipe.benchmarks.importer import Importer, Record

_NULL = type(None)


def spatial_columns(record: Record) -> dict[str, Any]:
    """Columns of a question about a scan, which ReVSI publishes under the same names."""
    return {
        "question_type": record["question_type"],
        "question": record["question"],
        "options": record.get("options"),
        "answer": record["ground_truth"],
        "answer_type": "choice" if record.get("options") else "number",
    }


def to_row(record: Record, number: int) -> dict[str, Any]:
    """`number` is not used, records have ids."""
    scene = f"{record['dataset']}/{record['scene_name']}"
    categories = {"dataset": record["dataset"]}
    if record.get("pruned") is not None:
        categories["pruned"] = str(record["pruned"]).lower()
    return {
        "id": str(record["id"]),
        "video": f"{scene}.mp4",
        "clip_id": scene,
        **spatial_columns(record),
        "categories": categories,
    }


IMPORTER = Importer(
    name="vsi",
    profile="vsi.official",
    columns={
        "id": (int, str),
        "dataset": (str,),
        "scene_name": (str,),
        "question_type": (str,),
        "question": (str,),
        "ground_truth": (str,),
        "options": (list, _NULL),
        "pruned": (bool, _NULL),
    },
    row=to_row,
    prompt=prompts.vsi(),
    prompt_source="vision-x-nyu/thinking-in-space @51e089c, lmms_eval/tasks/vsibench/utils.py, vsibench_doc_to_text",
    max_tokens=16,
    subsets={"debiased": lambda record: not record["pruned"], "pruned": lambda record: bool(record["pruned"])},
)
