"""NExT-QA, multiple choice: `val.csv` or `test.csv`, or `lmms-lab/NExTQA`, config MC.

With `map_vid_vidorID.json` beside the file videos are `<folder>/<video>.mp4` as published, else `<video>.mp4`. The
prompt is the question and its options: lmms-eval says nothing else.
"""

from __future__ import annotations

from typing import Any

from vidpipe.benchmarks import prompts
from vidpipe.benchmarks.importer import Companion, Importer, Record

OPTIONS = tuple(f"a{n}" for n in range(5))
KINDS = {"C": "causal", "T": "temporal", "D": "descriptive"}
"""By a type's first letter; the official table averages over each, TP among the temporal ones."""
_NULL = type(None)


def to_row(record: Record, number: int) -> dict[str, Any]:
    """Ids are the video and the question's number in it."""
    video = str(record["video"])
    return {
        "id": f"{video}_{record['qid']}",
        "video": f"{record.get('vidor') or video}.mp4",
        "clip_id": video,
        "question_type": record["type"],
        "categories": {"kind": KINDS[record["type"][0]]},
        "question": record["question"],
        "options": [record[name] for name in OPTIONS],
        "answer": int(record["answer"]),
        "answer_type": "choice_index",
    }


IMPORTER = Importer(
    name="nextqa",
    profile="nextqa.lmms_main",
    columns={
        "video": (str, int),
        "qid": (str, int),
        "type": (str,),
        "question": (str,),
        "answer": (str, int),
        **dict.fromkeys(OPTIONS, (str,)),
        "vidor": (str, _NULL),
    },
    row=to_row,
    prompt=prompts.nextqa(),
    prompt_source="EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/nextqa/utils.py, nextqa_doc_to_text_mc",
    max_tokens=16,
    companion=Companion(
        lambda path: "map_vid_vidorID.json",
        "video",
        lambda paths: {video: {"vidor": path} for video, path in paths.items()},
    ),
)
