"""Video-MME: `lmms-lab/Video-MME`, split `test`, 2 700 questions on 900 videos, without subtitles.

Videos are `data/<videoID>.mp4`; a video that was published as .MP4 or .mkv must be renamed or
linked. The prompt is that of the benchmark's own page.
"""

from __future__ import annotations

from typing import Any

from vidpipe.benchmarks.importer import Importer, Record, meta

CATEGORIES = ("duration", "domain", "sub_category", "task_type")
COLUMNS: dict[str, tuple[type, ...]] = {
    "question_id": (str,),
    "videoID": (str,),
    "question": (str,),
    "options": (list,),
    "answer": (str,),
    **dict.fromkeys(CATEGORIES, (str,)),
}
PROMPT = """\
Select the best answer to the following multiple-choice question based on the video. \
Respond with only the letter (A, B, C, or D) of the correct option.
{{ question }}
{{ options | join("\\n") }}
The best answer is:"""


def to_row(record: Record, number: int) -> dict[str, Any]:
    """A published record as a row; `number` is not used, records have ids."""
    row: dict[str, Any] = {
        "id": record["question_id"],
        "video": f"data/{record['videoID']}.mp4",
        "clip_id": record["videoID"],
        "question_type": record["task_type"],
        "question": record["question"],
        "options": record["options"],
        "answer": record["answer"],
        "answer_type": "choice",
        "categories": {name: record[name] for name in CATEGORIES},
        "scorer": IMPORTER.profile,
    }
    if rest := meta(record, COLUMNS):
        row["meta"] = rest
    return row


IMPORTER = Importer(
    name="videomme",
    profile="videomme.official",
    columns=COLUMNS,
    row=to_row,
    prompt=PROMPT,
    prompt_source="MME-Benchmarks/Video-MME @06c2315, README",
    max_tokens=16,
)
