"""What a run tells its watcher; terminals and log files show it in their own ways."""

from __future__ import annotations

from typing import Protocol

from vidpipe.record.row import OutputRow


class Display(Protocol):
    """Receives the events of a run."""

    def begin(self, rows: int, done: int) -> None:
        """The run has `rows` rows, `done` of them from before."""

    def state(self, text: str) -> None:
        """What the run is doing now, in a few words."""

    def row(self, row: OutputRow) -> None:
        """A row was recorded."""

    def end(self) -> None:
        """Nothing more will come."""
