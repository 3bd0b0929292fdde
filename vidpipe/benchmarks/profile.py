"""The nouns of scoring: a question, one scored reply, and the named profile that scores it.

Harnesses disagree on what the same reply is worth, so a score without the name of its
rules cannot be compared with anything. A profile is those rules under a name and a version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Question:
    """What a scorer may know of a row beside the reply."""

    answer: Any
    """Expected answer as the manifest has it."""
    question_type: str = ""
    options: tuple[str, ...] = ()
    answer_type: str | None = None
    """What the answer is, such as `choice_index`; None: its own type tells."""
    answers: tuple[Any, ...] = ()
    """Further answers that are right."""
    text: str = ""
    """The question, for the few rules that look into it."""
    judgement: str | None = None
    """What a judge model said about the reply; None: it was not asked."""


@dataclass(frozen=True)
class Scored:
    """One reply under one profile."""

    score: float
    """From 0 to 1."""
    extracted: Any = None
    """What was read out of the reply; None when nothing was."""
    parsed: bool = True
    """Whether the reply has the form of an answer; one that has not is wrong, and counted apart."""


@dataclass(frozen=True)
class Sets:
    """Questions that score together."""

    size: int
    """Questions of a set; sets with fewer are no part of the score."""
    rule: Callable[[Sequence[float], str, Mapping[str, str]], float]
    """Scores of a set in its order, its question type and its categories, to the set's score from 0 to 1."""


@dataclass(frozen=True)
class Profile:
    """Named, versioned rules from replies to one number."""

    name: str
    version: int
    """Raised by every change that can move a score."""
    source: str
    """Whose rules these are: paper, or upstream repository, commit, file and function."""
    rule: Callable[[str, Question], Scored]
    """Pure; raises ValueError for a question that it has no rule for."""
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Group -> question types. The headline is the plain mean over groups, a group the plain mean over its types.
    Empty: the headline is the plain mean over rows, or over sets."""
    sets: Sets | None = None
    """How rows of one `set_id` make one score; None: each row counts for itself."""
    reads_text: bool = False
    """Whether the rule looks into the question's text."""
    submission: Callable[[str, Question], Any] | None = None
    """A row's value in the file that the benchmark's server takes; None: the reply itself."""
