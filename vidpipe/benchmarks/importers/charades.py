"""Charades-STA: the text file `VIDEO start end##sentence`, or `lmms-lab/charades_sta`.

The Hub's times are float16, so 24.3 is 24.296875 there; the text file has the values themselves. Videos lie in
`Charades_v1_480/`. The annotated span is the answer: no clip window comes of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vidpipe.benchmarks import prompts
from vidpipe.benchmarks.importer import Importer, Record
from vidpipe.errors import ManifestError


def spans(record: Record) -> Iterable[Record]:
    """A line of the text file as the Hub's columns; a record that has them."""
    if "line" not in record:
        return (record,)
    head, mark, caption = record["line"].partition("##")
    try:
        video, start, end = head.split()
        span = [float(start), float(end)]
    except ValueError:
        mark = ""
    if not mark:
        raise ManifestError("syntax", f"{record['line']!r} is not `VIDEO start end##sentence`.")
    return ({"video": f"{video}.mp4", "caption": caption, "timestamp": span},)


def to_row(record: Record, number: int) -> dict[str, Any]:
    """Ids are the record's number."""
    return {
        "id": str(number),
        "video": f"Charades_v1_480/{record['video']}",
        "question": record["caption"],
        "answer": record["timestamp"],
        "answer_type": "span",
    }


IMPORTER = Importer(
    name="charades",
    profile="charades.lmms_main.miou",
    columns={"video": (str,), "caption": (str,), "timestamp": (list,)},
    row=to_row,
    prompt=prompts.charades(),
    prompt_source="EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/tasks/charades_sta/charades.yaml",
    max_tokens=50,
    expand=spans,
)
