"""TempCompass: `lmms-lab/TempCompass`, a file a task: multi-choice, yes_no, caption_matching, captioning.

The file's name is the task, --src one file or their folder. The official JSON (video -> aspect -> questions) is read
as well. Captioning is judged by a model, so its rows run and are counted as unscored.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vidpipe.benchmarks import prompts
from vidpipe.benchmarks.importer import Importer, Record

_NULL = type(None)
ANSWER_TYPES = {"multi-choice": "choice_text", "yes_no": "yes_no", "caption_matching": "choice_text"}


def questions(record: Record) -> Iterable[Record]:
    """The questions of the official file's one object; a record that is a question itself."""
    if "video_id" in record:
        return (record,)
    return (
        {"video_id": video, "dim": aspect, **question}
        for video, aspects in record.items()
        for aspect, found in aspects.items()
        for question in found
    )


def to_row(record: Record, number: int) -> dict[str, Any]:
    """Ids are the task, the video and the record's number."""
    task = record["task"]
    return {
        "id": f"{task}-{record['video_id']}-{number}",
        "video": f"videos/{record['video_id']}.mp4",
        "clip_id": record["video_id"],
        "question_type": task,
        "question": record["question"],
        "answer": record.get("answer"),
        "answer_type": ANSWER_TYPES.get(task, "none"),
        "categories": {"dim": record["dim"]},
    }


IMPORTER = Importer(
    name="tempcompass",
    profile="tempcompass.rules",
    columns={
        "video_id": (str,),
        "question": (str,),
        "answer": (str, _NULL),
        "dim": (str,),
        "task": (str,),
    },
    row=to_row,
    prompt=prompts.tempcompass(),
    prompt_source="EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/tempcompass",
    max_tokens=16,
    from_file_name="task",
    expand=questions,
)
