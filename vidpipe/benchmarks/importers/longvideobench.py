"""LongVideoBench: `longvideobench/LongVideoBench`, validation, 1 337 questions; or its `lvb_val.json`.

Subtitles (`subtitles/<subtitle_path>`) come with --subtitles. The test split has no labels: its rows run, are counted
as unscored, and go into a submission file.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from vidpipe.benchmarks import prompts
from vidpipe.benchmarks.importer import Importer, Record

CATEGORIES = ("duration_group", "question_category", "topic_category")
OPTIONS = tuple(f"option{n}" for n in range(5))
_NULL = type(None)


def to_row(record: Record, number: int) -> dict[str, Any]:
    """Options end before the first `N/A`, and a `correct_choice` of -1 is no label."""
    options = record.get("candidates") or [
        *takewhile(lambda option: option not in (None, "N/A"), (record.get(name) for name in OPTIONS))
    ]
    right = record.get("correct_choice")
    return {
        "id": record["id"],
        "video": f"videos/{record['video_path']}",
        "clip_id": record["video_id"],
        "question_type": record["question_category"],
        "question": record["question"],
        "options": options,
        "answer": None if right is None or right < 0 else right,
        "answer_type": "choice_index",
        "categories": {name: str(record[name]) for name in CATEGORIES},
    }


def subtitles(record: Record) -> dict[str, Any]:
    """Cue times count from the whole video's start, of which the published one is a piece."""
    return {
        "subtitles": f"subtitles/{record['subtitle_path']}",
        "subtitle_offset": record["starting_timestamp_for_subtitles"],
    }


IMPORTER = Importer(
    name="longvideobench",
    profile="longvideobench.lmms_main",
    columns={
        "id": (str,),
        "video_id": (str,),
        "video_path": (str,),
        "question": (str,),
        "correct_choice": (int, _NULL),
        **dict.fromkeys(CATEGORIES, (str, int)),
        **dict.fromkeys(OPTIONS, (str, _NULL)),
        "candidates": (list, _NULL),
        "subtitle_path": (str, _NULL),
        "starting_timestamp_for_subtitles": (int, float, _NULL),
    },
    row=to_row,
    prompt=prompts.lettered(),
    prompt_source="EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/longvideobench/utils.py",
    max_tokens=32,
    subtitles=subtitles,
)
