"""TimeLens: `kcz358/timelens`, one split a file; re-annotated, so not comparable with Charades-STA itself.

The annotated span is the answer: no clip window comes of it. Records have no id; theirs are the
file's name and the record's number.
"""

from __future__ import annotations

from typing import Any

from vidpipe.benchmarks import prompts
from vidpipe.benchmarks.importer import Importer, Record


def to_row(record: Record, number: int) -> dict[str, Any]:
    """The first span is the answer, in seconds."""
    return {
        "id": f"{record['split']}-{number}",
        "video": record["video_path"],
        "question": record["query"],
        "answer": record["span"][0],
        "answer_type": "span",
        "categories": {"source": record["split"]},
    }


IMPORTER = Importer(
    name="timelens",
    profile="timelens.lmms_main.miou",
    columns={"video_path": (str,), "query": (str,), "span": (list,), "split": (str,)},
    row=to_row,
    prompt=prompts.timelens(),
    prompt_source="EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/timelens/utils.py, timelens_doc_to_text",
    max_tokens=50,
    from_file_name="split",
)
