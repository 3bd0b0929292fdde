"""Video-MME: `lmms-lab/Video-MME`, split `test`, 2 700 questions on 900 videos.

Videos are `data/<videoID>.mp4` (a few .MP4 or .mkv), subtitles `subtitle/<videoID>.srt`, which some videos lack and
rows get with --subtitles. Also reads the official JSON, three questions a video, whose `response` is a reply to score.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vidpipe.benchmarks import prompts
from vidpipe.benchmarks.importer import Importer, Record

CATEGORIES = ("duration", "domain", "sub_category", "task_type")
_NULL = type(None)


def questions(record: Record) -> Iterable[Record]:
    """The questions of a video, with the video's own columns; a record that is a question itself."""
    if "questions" not in record:
        return (record,)
    video = {name: value for name, value in record.items() if name != "questions"}
    return ({**video, **question} for question in record["questions"])


def _video(record: Record) -> str:
    return str(record.get("videoID") or record.get("video_id"))


def to_row(record: Record, number: int) -> dict[str, Any]:
    """`number` is not used, records have ids."""
    return {
        "id": record["question_id"],
        "video": f"data/{_video(record)}.mp4",
        "clip_id": _video(record),
        "question_type": record["task_type"],
        "question": record["question"],
        "options": record["options"],
        "answer": record["answer"],
        "answer_type": "choice",
        "categories": {name: record[name] for name in CATEGORIES},
    }


IMPORTER = Importer(
    name="videomme",
    profile="videomme.official",
    columns={
        "question_id": (str,),
        "videoID": (str, _NULL),
        "question": (str,),
        "options": (list,),
        "answer": (str,),
        **dict.fromkeys(CATEGORIES, (str,)),
    },
    row=to_row,
    prompt=prompts.videomme(),
    prompt_source="MME-Benchmarks/Video-MME @06c2315, README",
    max_tokens=16,
    expand=questions,
    suffixes=(".MP4", ".mkv"),
    subtitles=lambda record: {"subtitles": f"subtitle/{_video(record)}.srt"},
)
