"""Failed rows by the kind of their error, each kind with an example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MOST_CHARACTERS = 500
"""Of an example: an engine's message can be pages long."""


@dataclass(frozen=True)
class Failed:
    """Rows with one kind of error."""

    kind: str
    rows: int
    example: str
    """What one of them says."""


class FailureCount:
    """Adds failures up; the first example of a kind stays."""

    def __init__(self) -> None:
        self._kinds: dict[str, Failed] = {}

    def add(self, kind: str, example: str, rows: int = 1) -> None:
        """Count `rows` more."""
        known = self._kinds.get(kind)
        if known is None:
            self._kinds[kind] = Failed(kind, rows, example[:MOST_CHARACTERS])
        else:
            self._kinds[kind] = Failed(kind, known.rows + rows, known.example)

    @property
    def most_first(self) -> tuple[Failed, ...]:
        """What was counted, the most frequent kind first."""
        return tuple(sorted(self._kinds.values(), key=lambda failed: (-failed.rows, failed.kind)))

    def as_mark(self) -> dict[str, Any]:
        """As a done mark holds it: kind -> [rows, example]."""
        return {failed.kind: [failed.rows, failed.example] for failed in self._kinds.values()}

    def add_mark(self, mark: Mapping[str, Any]) -> None:
        """Add what `as_mark` gave."""
        for kind, (rows, example) in mark.items():
            self.add(kind, example, rows)
