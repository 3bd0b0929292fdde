"""What a run tells its watcher; terminals and log files show it in their own ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from vidpipe.record.row import OutputRow

if TYPE_CHECKING:
    from vidpipe.job.progress import Progress


class Display(Protocol):
    """Receives the events of a run."""

    def begin(self, rows: int, done: int) -> None:
        """The run has `rows` rows, `done` of them from before."""

    def state(self, text: str) -> None:
        """What the run is doing now, in a few words."""

    def warn(self, text: str) -> None:
        """What is wrong, while the run goes on or as its last words."""

    def row(self, row: OutputRow) -> None:
        """A row was recorded."""

    def show(self, progress: Progress) -> None:
        """How far it is; comes twice a second from a thread of its own, and once at the end."""

    def end(self) -> None:
        """Nothing more will come."""
