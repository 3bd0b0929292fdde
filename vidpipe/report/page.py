"""The page of a run: one file without any request, in which nothing that a run brought along can act.

Texts of a run reach the page in two ways only: through templates that escape everything, and
as JSON in elements that browsers do not run, which the page's script reads and shows as text.
A content security policy allows the page's own script and style by their hashes and nothing
else, so that what slipped through would not run either.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from vidpipe.report.histogram import Histogram

FOLDER = Path(__file__).parent
UNSAFE = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


@dataclass(frozen=True)
class ScoreLine:
    """One line of a table of scores, in percent."""

    name: str
    value: float
    interval: tuple[float, float] | None
    rows: int
    clips: int
    depth: int = 0
    """0 for the headline, 1 for its parts."""


@dataclass(frozen=True)
class Scores:
    """Scores under one set of rules."""

    rules: str
    source: str
    lines: Sequence[ScoreLine]
    notes: Sequence[str]


@dataclass(frozen=True)
class Distribution:
    """A histogram with its name and unit."""

    name: str
    unit: str
    bins: Histogram


@dataclass(frozen=True)
class Failures:
    """Rows that failed alike."""

    kind: str
    rows: int
    example: str
    advice: str | None


@dataclass(frozen=True)
class Process:
    """How a process spent its engine's time."""

    wall_s: float
    parts: Sequence[tuple[str, float]]
    """What, and seconds; together `wall_s`."""
    sentence: str


@dataclass(frozen=True)
class Compared:
    """A number that was predicted, and what came true."""

    name: str
    predicted: str
    true: str
    error: str


@dataclass(frozen=True)
class Page:
    """Everything that the page shows."""

    title: str
    description: str
    made: str
    """When, and by which version."""
    partial: bool
    headline: Sequence[tuple[str, str, str]]
    """Large numbers: value, what it is, and a word for its colour (`good`, `bad` or empty)."""
    scores: Sequence[Scores]
    no_scores: str | None
    speed: Sequence[tuple[str, str]]
    processes: Sequence[Process]
    compared: Sequence[Compared]
    distributions: Sequence[Distribution]
    failures: Sequence[Failures]
    facts: Sequence[tuple[str, str]]
    recipe: str
    notes: Sequence[str]
    rows: Sequence[Mapping[str, Any]]
    """What page.js reads; see `job.report_rows`."""
    clips: Sequence[Mapping[str, Any]]
    pictures: Sequence[Sequence[str]] = field(default_factory=list)
    """For each clip its pictures as data URIs."""


def script_json(value: Any) -> Markup:
    """JSON that cannot end the element that it stands in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.translate(UNSAFE))


def render(page: Page) -> str:
    """The page as HTML."""
    style, script = ((FOLDER / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"script_json": script_json, "number": number}
    policy = (
        f"default-src 'none'; script-src {_source(script)}; style-src {_source(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return environment.get_template("page.html.j2").render(
        page=page,
        policy=policy,
        style=Markup(style),
        script=Markup(script),
    )


def number(value: float) -> str:
    """A number for people: thousands apart, no more than three decimals."""
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.{3 if abs(value) < 1 else 1 if abs(value) < 1000 else 0}f}"


def _source(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
