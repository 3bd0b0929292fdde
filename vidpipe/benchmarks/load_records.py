"""Replies of other tools: JSON lines with our column names or theirs, lmms-eval's sample logs, Video-MME's own form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from vidpipe.benchmarks.importer import Importer
from vidpipe.benchmarks.predictions import Prediction
from vidpipe.benchmarks.profile import Question
from vidpipe.benchmarks.registry import IMPORTERS, get_importer
from vidpipe.errors import ManifestError, RowError
from vidpipe.manifest import cells
from vidpipe.manifest.scoring import answers_of, categories_of, options_of

TEXTS = ("text", "prediction", "response")
"""What tools call a reply."""
_ANSWERS = ("answer", "ground_truth", "target")


def read_records(records: Iterable[Mapping[str, Any]], benchmark: str | None, name: str = "") -> list[Prediction]:
    """A row for each record.

    Args:
        records: JSON objects.
        benchmark: Importer that reads what the benchmark publishes inside them.
        name: The file's, without its ending; lmms-eval's says the task (`..._samples_mvbench_state_change`).

    Raises:
        ManifestError: a record has no id, no text as its reply, a column of another type than scorers read, or not
            what the benchmark publishes.
    """
    importer = get_importer(benchmark) if benchmark in IMPORTERS else None
    task = name.rpartition("samples_")[2].removeprefix(f"{benchmark}_")
    flat = (one for record in records for one in _expanded(record, importer))
    return [_of_record(record, number, importer, task) for number, record in enumerate(flat, 1)]


def _expanded(record: Mapping[str, Any], importer: Importer | None) -> Iterable[Mapping[str, Any]]:
    """Published objects with replies inside, such as Video-MME's `questions`, as rows; others as they are."""
    if importer is None or "id" in record or "filtered_resps" in record:
        return (record,)
    return ({**importer.make_row(one, n), **_reply(one)} for n, one in enumerate(importer.expand(record)))


def _reply(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: record[name] for name in TEXTS if name in record}


def _row_of_doc(doc: Mapping[str, Any], number: int, importer: Importer, task: str) -> dict[str, Any]:
    named = {importer.from_file_name: task} if importer.from_file_name else {}
    try:
        return importer.make_row({**named, **doc}, number - 1)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ManifestError(
            "missing_column",
            f"record {number}: its doc is not what {importer.name} publishes: {type(error).__name__} {error}. Found: "
            f"{', '.join(doc)}.",
            line=number,
        ) from None


def _of_record(record: Mapping[str, Any], number: int, importer: Importer | None, task: str) -> Prediction:
    """A line of JSON: our own column names, or a sample of lmms-eval (`doc`, `filtered_resps`)."""
    if "filtered_resps" in record:
        replies, doc = record["filtered_resps"], record.get("doc") or {}
        doc = _row_of_doc(doc, number, importer, task) if importer else doc
        record = {"id": record.get("doc_id", number), **doc, "text": replies[0] if replies else None}
    text = next((record[name] for name in TEXTS if name in record), None)
    answer = next((record[name] for name in _ANSWERS if name in record), None)
    if "id" not in record:
        raise ManifestError("missing_column", f"record {number}: no id. Found: {', '.join(record)}.", line=number)
    if isinstance(text, list):
        text = text[0] if text else None
    if text is not None and not isinstance(text, str):
        raise ManifestError("syntax", f"record {number}: the reply must be a text, found {text!r}.", line=number)
    try:
        return Prediction(
            str(record["id"]),
            text,
            Question(
                answer,
                str(record.get("question_type") or ""),
                options_of(record),
                cells.text(record, "answer_type"),
                answers_of(record),
                str(record.get("question") or ""),
            ),
            str(record.get("clip_id") or record.get("video") or record["id"]),
            cells.text(record, "scorer"),
            record.get("status") == "length",
            categories_of(record),
            None if record.get("set_id") is None else str(record["set_id"]),
            cells.whole_number(record, "set_index") or 0,
        )
    except RowError as error:
        raise ManifestError("syntax", f"record {number}: {error}", line=number) from None
