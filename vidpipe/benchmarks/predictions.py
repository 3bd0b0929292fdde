"""Replies with what a scorer needs beside them, as read from a run or from another tool's file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vidpipe.benchmarks.profile import Question


@dataclass(frozen=True, slots=True)
class Prediction:
    """One row's reply."""

    id: str
    text: str | None
    """None: the row failed before there was a reply, or has none."""
    question: Question
    """Its `answer` is None where the manifest has none: such rows cannot be scored."""
    clip: str
    """Rows of one clip are not independent."""
    scorer: str | None = None
    """Profile that the manifest names for the row."""
    cut: bool = False
    """Whether the reply was cut by the token limit."""
    categories: Mapping[str, str] = field(default_factory=dict)
    set_id: str | None = None
    """Rows of one set score together, where the profile says so."""
    set_index: int = 0
    """Place in the set."""


@dataclass(frozen=True)
class Scoring:
    """How a run's recipe wants it scored; what the command line says goes before."""

    scorer: str | None = None
    """Profile of rows that name none."""
    cluster_by: str | None = None
    """Column whose equal values make rows depend on each other; None: the clip."""
    breakdowns: tuple[str, ...] | None = None
    """Categories and columns to report by; None: all categories."""
    strip_reasoning: bool = False
    """Take tagged reasoning out of replies first."""


@dataclass(frozen=True)
class Predictions:
    """All replies of one run."""

    source: str
    rows: list[Prediction]
    expected: int | None
    """Rows of the manifest; None where the file does not tell."""
    partial: bool = False
    """Whether rows are known to be missing."""
    scoring: Scoring = Scoring()
    """From the run's recipe."""
    asked: Mapping[str, Any] = field(default_factory=dict)
    """What else a number rests on: model, sampling, pruning, generation, and the prompt's hash; empty where the file
    does not tell."""

    @property
    def missing(self) -> int | None:
        """Rows of the manifest that have no record yet."""
        return None if self.expected is None else self.expected - len(self.rows)


def same_questions(a: Prediction, b: Prediction) -> bool:
    """Whether two runs were asked the same thing, as far as a score depends on it."""
    mine: tuple[Any, ...] = (a.question.answer, a.question.question_type, a.question.options)
    return mine == (b.question.answer, b.question.question_type, b.question.options)
