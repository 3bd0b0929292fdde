"""Where the engines on a Ray cluster tell the command how they get on, and hear that it wants to stop.

An actor on the command's own node, for Ray's actors cannot call the command itself. Nothing in it is needed to go
on with a run: that is all in the run directory.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from vidpipe.record.row import OutputRow

REPORT_EVERY_S = 1.0


@dataclass(frozen=True)
class Report:
    """What one engine says every `REPORT_EVERY_S`."""

    seat: int
    """Its place among the run's engines, from 0."""
    node: str
    """Ray's id of the node that it is on."""
    state: str
    """What it is doing now, in a few words."""
    rows: list[OutputRow] = field(default_factory=list)
    """Recorded since the last report; status alone, without texts."""


class Desk:
    """See the module; to be made a Ray actor."""

    def __init__(self) -> None:
        self._reports: list[Report] = []
        self._stop = False

    def report(self, report: Report) -> bool:
        """Leave a report; returns whether the engine is to stop."""
        self._reports.append(report)
        return self._stop

    def ask_to_stop(self) -> None:
        """Have every engine stop that reports from now on."""
        self._stop = True

    def news(self) -> list[Report]:
        """The reports since the last call."""
        news, self._reports = self._reports, []
        return news
