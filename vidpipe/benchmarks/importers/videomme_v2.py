"""Video-MME-v2: `MME-Benchmarks/Video-MME-v2`; four questions on a video are scored together.

Videos are `data/<video_id>.mp4`, subtitles (with --subtitles) `subtitle/<video_id>.jsonl`, a word a line.
"""

from __future__ import annotations

from typing import Any

from vidpipe.benchmarks import prompts
from vidpipe.benchmarks.importer import Importer, Record

CATEGORIES = ("group_structure", "level", "second_head", "third_head")
_NULL = type(None)


def to_row(record: Record, number: int) -> dict[str, Any]:
    """A set is a video; its questions count in the order of the file, which is that of their ids."""
    video = str(record["video_id"])
    return {
        "id": str(record["question_id"]),
        "video": f"data/{video}.mp4",
        "clip_id": video,
        "set_id": video,
        "question_type": record["group_type"],
        "question": record["question"],
        "options": record["options"].split("\n"),
        "answer": record["answer"].strip(),
        "answer_type": "choice",
        "categories": {name: str(record[name]) for name in CATEGORIES if record.get(name) is not None},
    }


IMPORTER = Importer(
    name="videomme_v2",
    profile="videomme_v2.ov2",
    columns={
        "question_id": (str, int),
        "video_id": (str, int),
        "question": (str,),
        "options": (str,),
        "answer": (str,),
        "group_type": (str,),
        **dict.fromkeys(CATEGORIES, (str, int, _NULL)),
    },
    row=to_row,
    prompt=prompts.videomme_v2(),
    prompt_source="EvolvingLMMs-Lab/lmms-eval @3997a60, lmms_eval/tasks/videommev2/utils.py, videommev2_doc_to_text",
    max_tokens=16,
    suffixes=(".MP4", ".mkv"),
    subtitles=lambda record: {"subtitles": f"subtitle/{record['video_id']}.jsonl"},
)
