"""LongVideoBench: `longvideobench/LongVideoBench`, validation, 1 337 questions; without subtitles.

The test split has no labels: its rows run and are counted as unscored.
"""

from __future__ import annotations

from typing import Any

from vidpipe.benchmarks.importer import Importer, Record, meta

CATEGORIES = ("duration_group", "question_category", "topic_category")
OPTIONS = tuple(f"option{n}" for n in range(5))
_NULL = type(None)
COLUMNS: dict[str, tuple[type, ...]] = {
    "id": (str,),
    "video_id": (str,),
    "video_path": (str,),
    "question": (str,),
    "correct_choice": (int, _NULL),
    **dict.fromkeys(CATEGORIES, (str, int)),
    **dict.fromkeys(OPTIONS, (str, _NULL)),
}
PROMPT = """\
{{ question }}
{% for option in options %}{{ "ABCDE"[loop.index0] }}. {{ option }}
{% endfor %}Answer with the option's letter from the given choices directly.
"""


def to_row(record: Record, number: int) -> dict[str, Any]:
    """A published record as a row; options end before the first `N/A`, and a `correct_choice` of -1 is no label."""
    options: list[str] = []
    for name in OPTIONS:
        if record.get(name) in (None, "N/A"):
            break
        options.append(record[name])
    row: dict[str, Any] = {
        "id": record["id"],
        "video": f"videos/{record['video_path']}",
        "clip_id": record["video_id"],
        "question_type": record["question_category"],
        "question": record["question"],
        "options": options,
        "answer_type": "choice_index",
        "categories": {name: str(record[name]) for name in CATEGORIES},
        "scorer": IMPORTER.profile,
    }
    if (right := record.get("correct_choice")) is not None and right >= 0:
        row["answer"] = right
    if rest := meta(record, COLUMNS):
        row["meta"] = rest
    return row


IMPORTER = Importer(
    name="longvideobench",
    profile="longvideobench.lmms_main",
    columns=COLUMNS,
    row=to_row,
    prompt=PROMPT,
    prompt_source="EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/longvideobench/utils.py",
    max_tokens=32,
)
