"""ActivityNet-QA: `test_q.json` with `test_a.json` beside it, or `lmms-lab/ActivityNetQA`; 8 000 test questions.

Videos are `v_<video_name>.mp4`, .webm or .mkv.
"""

from __future__ import annotations

from typing import Any

from vidpipe.benchmarks import prompts
from vidpipe.benchmarks.importer import Companion, Importer, Record

TYPES = ("motion", "spatial", "temporal", "yes_no", "colour", "object", "location", "number", "other")
"""What the published numbers 0 to 8 mean."""


def to_row(record: Record, number: int) -> dict[str, Any]:
    """`number` is not used, records have ids."""
    return {
        "id": record["question_id"],
        "video": f"v_{record['video_name']}.mp4",
        "clip_id": record["video_name"],
        "question_type": TYPES[int(record["type"])],
        "question": record["question"],
        "answer": record["answer"],
        "answer_type": "text",
    }


IMPORTER = Importer(
    name="activitynetqa",
    profile="activitynetqa.exact",
    columns={
        "question_id": (str,),
        "video_name": (str,),
        "question": (str,),
        "answer": (str,),
        "type": (int, str),
    },
    row=to_row,
    prompt=prompts.activitynetqa(),
    prompt_source="EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/activitynetqa/utils.py",
    max_tokens=64,
    companion=Companion(
        lambda path: path.name.replace("_q.", "_a."),
        "question_id",
        lambda answers: {one["question_id"]: one for one in answers},
    ),
    suffixes=(".webm", ".mkv"),
)
