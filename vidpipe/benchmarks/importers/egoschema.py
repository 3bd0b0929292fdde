"""EgoSchema: `lmms-lab/egoschema`, config Subset, or `questions.json` with `subset_answers.json` beside it.

Answers of 500 of the 5 031 questions are public. The others run, are counted as unscored, and go into a submission
file; part `subset` leaves them out.
"""

from __future__ import annotations

from typing import Any

from vidpipe.benchmarks import prompts
from vidpipe.benchmarks.importer import Companion, Importer, Record

_NULL = type(None)
OPTIONS = tuple(f"option {n}" for n in range(5))


def to_row(record: Record, number: int) -> dict[str, Any]:
    """The answer is an index from 0; the Hub has it as text, and letters in its options."""
    video, answer = record.get("video_idx") or record.get("q_uid"), record.get("answer")
    return {
        "id": str(record.get("question_idx") or record.get("q_uid")),
        "video": f"videos/{video}.mp4",
        "clip_id": video,
        "question": record["question"],
        "options": record.get("option") or [f"{'ABCDE'[n]}. {record[name]}" for n, name in enumerate(OPTIONS)],
        "answer": None if answer in (None, "") else int(str(answer)),
        "answer_type": "choice_index",
    }


IMPORTER = Importer(
    name="egoschema",
    profile="egoschema.lmms_main",
    columns={
        "question_idx": (str, int, _NULL),
        "video_idx": (str, _NULL),
        "q_uid": (str, _NULL),
        "question": (str,),
        "option": (list, _NULL),
        **dict.fromkeys(OPTIONS, (str, _NULL)),
        "answer": (str, int, _NULL),
    },
    row=to_row,
    prompt=prompts.egoschema(),
    prompt_source="EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/egoschema/utils.py",
    max_tokens=16,
    companion=Companion(
        lambda path: "subset_answers.json",
        "q_uid",
        lambda answers: {uid: {"answer": answer} for uid, answer in answers.items()},
    ),
    subsets={"subset": lambda record: record.get("answer") not in (None, "")},
)
