"""ReVSI: `3dlg-hcvc/ReVSI`, config `16_frame`, `32_frame` or `64_frame`.

Its videos hold exactly the frames that a model is to see, so every row asks for as many; the recipe names
Qwen3-VL's rule for that (LLaVA-OneVision-2's is `native`). Records have no id that all files share; the record's
number serves where there is none.
"""

from __future__ import annotations

from typing import Any

from vidpipe.benchmarks import prompts
from vidpipe.benchmarks.importer import Importer, Record
from vidpipe.benchmarks.importers.vsi import spatial_columns


def to_row(record: Record, number: int) -> dict[str, Any]:
    """`number` is the id of records without one."""
    identity = record.get("id")
    return {
        "id": str(number if identity is None else identity),
        "video": f"{record['num_frames']}_frame/{record['scene_id']}.mp4",
        "clip_id": record["scene_id"],
        **spatial_columns(record),
        "sampling": {"num_frames": record["num_frames"]},
    }


IMPORTER = Importer(
    name="revsi",
    profile="revsi.lmms_main",
    columns={
        "scene_id": (str,),
        "num_frames": (int,),
        "question_type": (str,),
        "question": (str,),
        "options": (list, type(None)),
        "ground_truth": (str,),
        "id": (int, str, type(None)),
    },
    row=to_row,
    prompt=prompts.revsi(),
    prompt_source="EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/revsi/utils.py, revsi_doc_to_text",
    max_tokens=16,
    sampling={"rule": "hf"},  # Qwen3-VL's rule that takes an exact number of frames
)
