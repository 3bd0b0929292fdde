"""TimeLens: `kcz358/timelens`, one split a file; re-annotated, so not comparable with Charades-STA itself.

The annotated span is the answer: no clip window comes of it. Records have no id; theirs are the
file's name and the record's number.
"""

from __future__ import annotations

from typing import Any

from vidpipe.benchmarks.importer import Importer, Record, meta

COLUMNS: dict[str, tuple[type, ...]] = {"video_path": (str,), "query": (str,), "span": (list,), "split": (str,)}
PROMPT = (
    "Please find the visual event described by the sentence '{{ question }}', determining its starting and ending "
    "times. The format should be: 'The event happens in <start time> - <end time> seconds'."
)


def to_row(record: Record, number: int) -> dict[str, Any]:
    """A published record as a row; its first span is the answer, in seconds."""
    row: dict[str, Any] = {
        "id": f"{record['split']}-{number}",
        "video": record["video_path"],
        "question": record["query"],
        "answer": record["span"][0],
        "answer_type": "span",
        "categories": {"source": record["split"]},
        "scorer": IMPORTER.profile,
    }
    if rest := meta(record, COLUMNS):
        row["meta"] = rest
    return row


IMPORTER = Importer(
    name="timelens",
    profile="timelens.lmms_main.miou",
    columns=COLUMNS,
    row=to_row,
    prompt=PROMPT,
    prompt_source="EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/timelens/utils.py, timelens_doc_to_text",
    max_tokens=50,
    from_file_name="split",
)
