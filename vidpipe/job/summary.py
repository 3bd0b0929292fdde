"""What a run came to, from the rows that its directory holds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq


@dataclass(frozen=True)
class Sample:
    """One answered row, for the table at the end of a run."""

    id: str
    question: str
    text: str
    answer: str | None


@dataclass(frozen=True)
class Summary:
    """The end of a run in numbers."""

    rows: int
    expected: int
    """Rows that the manifest has."""
    statuses: Mapping[str, int]
    errors: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """For each error kind: rows, and the first row's message."""
    flags: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """For each flag of a reply, and each parse state but `ok`: rows, and the first one's id. With the column's name."""
    asked_again: int = 0
    """Rows with more than one try."""
    matches: int | None = None
    """Rows whose text equals their `answer` exactly; None without answers."""
    with_answer: int = 0
    samples: tuple[Sample, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether no row is missing."""
        return self.rows >= self.expected


def summarize(results: Path, expected: int, samples: int = 8) -> Summary:
    """Read the numbers off a results file.

    Args:
        results: A file that `record.merge` wrote.
        expected: Rows that the manifest has.
        samples: Answered rows to quote.
    """
    schema = pq.read_schema(results)
    wanted = ["id", "status", "error_kind", "error", "text"]
    wanted += [name for name in ("question", "answer", "reply", "other_tries") if name in schema.names]
    rows = pq.read_table(results, columns=wanted).to_pylist()
    errors: dict[str, tuple[int, str]] = {}
    for row in rows:
        if row["error_kind"]:
            count, first = errors.get(row["error_kind"], (0, row["error"]))
            errors[row["error_kind"]] = (count + 1, first)
    flags: dict[str, tuple[int, str]] = {}
    for row in rows:
        for mark in _marks(row.get("reply")):
            count, name = flags.get(mark, (0, row["id"]))
            flags[mark] = (count + 1, name)
    judged = [row for row in rows if row.get("answer") is not None]
    return Summary(
        rows=len(rows),
        expected=expected,
        statuses=Counter(row["status"] for row in rows),
        errors=errors,
        flags=flags,
        asked_again=sum(bool(row.get("other_tries")) for row in rows),
        matches=sum((row["text"] or "").strip() == _answer(row) for row in judged) if judged else None,
        with_answer=len(judged),
        samples=tuple(
            Sample(row["id"], row.get("question") or "", row["text"], _answer(row) if row.get("answer") else None)
            for row in rows
            if row["text"] is not None
        )[:samples],
    )


def _marks(reply: Mapping[str, Any] | None) -> list[str]:
    """What is noticed about a reply, by the columns that say so."""
    if reply is None:
        return []
    parse = [] if reply["parse"] in (None, "ok") else [f"reply.parse {reply['parse']}"]
    return [*parse, *(f"reply.flags {flag}" for flag in reply["flags"])]


def _answer(row: Mapping[str, Any]) -> str:
    """The expected text: JSON manifests store answers as JSON text, CSV ones as they are."""
    try:
        value = json.loads(row["answer"])
    except ValueError:
        value = row["answer"]
    return value if isinstance(value, str) else str(row["answer"])
