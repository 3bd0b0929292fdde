"""A run on a terminal (one live line) or in a log file (a plain line now and then)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from vidpipe.job.display import Display
from vidpipe.record.row import OutputRow

PLAIN_EVERY_S = 10.0


def make_display(stream: TextIO) -> Display:
    """The display that fits `stream`."""
    return LiveDisplay(stream) if stream.isatty() else PlainDisplay(stream)


class LiveDisplay:
    """A progress line with rows done and failed, rate, time left and what the engine does."""

    def __init__(self, stream: TextIO) -> None:
        self._progress = Progress(
            TextColumn("{task.fields[state]}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("rows, {task.fields[failed]} failed, {task.fields[rate]}"),
            TimeRemainingColumn(),
            console=Console(file=stream),
            transient=True,
            redirect_stdout=False,  # the engine's output goes to a file, not above the bar
            redirect_stderr=False,
        )
        self._task = self._progress.add_task("", total=None, state="planning", failed=0, rate="")
        self._meter = _Meter()

    def begin(self, rows: int, done: int) -> None:
        """See `Display.begin`."""
        self._progress.start()
        self._progress.update(self._task, total=rows, completed=done)

    def state(self, text: str) -> None:
        """See `Display.state`."""
        self._progress.update(self._task, state=text)

    def row(self, row: OutputRow) -> None:
        """See `Display.row`."""
        self._meter.count(row)
        self._progress.update(self._task, advance=1, failed=self._meter.failed, rate=self._meter.rate)

    def end(self) -> None:
        """See `Display.end`."""
        self._progress.stop()


class PlainDisplay:
    """Lines for logs: each change of state, and the counts every ten seconds."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._meter = _Meter(clock)
        self._rows = self._done = 0
        self._printed = clock()

    def begin(self, rows: int, done: int) -> None:
        """See `Display.begin`."""
        self._rows, self._done = rows, done
        self._print(f"{rows} rows, {done} done before" if done else f"{rows} rows")

    def state(self, text: str) -> None:
        """See `Display.state`."""
        self._print(text)

    def row(self, row: OutputRow) -> None:
        """See `Display.row`."""
        self._meter.count(row)
        self._done += 1
        if self._clock() - self._printed >= PLAIN_EVERY_S:
            left = self._meter.seconds_left(self._rows - self._done)
            eta = "" if left is None else f", {left:.0f} s left"
            self._print(f"{self._done} of {self._rows} rows, {self._meter.failed} failed, {self._meter.rate}{eta}")

    def end(self) -> None:
        """See `Display.end`."""

    def _print(self, line: str) -> None:
        self._printed = self._clock()
        self._stream.write(f"{line}\n")
        self._stream.flush()


class _Meter:
    """Counts rows by status and measures their rate from the first one on."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._statuses: Counter[str] = Counter()
        self._first_s: float | None = None

    def count(self, row: OutputRow) -> None:
        if self._first_s is None:
            self._first_s = self._clock()
        self._statuses[row.status] += 1

    @property
    def failed(self) -> int:
        return sum(count for status, count in self._statuses.items() if status.endswith("_error"))

    @property
    def rows_per_s(self) -> float:
        elapsed_s = 0.0 if self._first_s is None else self._clock() - self._first_s
        return (self._statuses.total() - 1) / elapsed_s if elapsed_s > 0 else 0.0

    @property
    def rate(self) -> str:
        return f"{self.rows_per_s:.1f} rows/s"

    def seconds_left(self, rows: int) -> float | None:
        return rows / self.rows_per_s if self.rows_per_s else None
