"""A run in a log (a plain line now and then, or JSON), and the choice among displays."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TextIO

from vidpipe.cli.progress_style import ProgressStyle
from vidpipe.job.display import Display
from vidpipe.record.row import OutputRow
from vidpipe.wording import counted

if TYPE_CHECKING:
    from vidpipe.job.progress import Progress

EVERY_S, LATER_EVERY_S = 10.0, 60.0
"""Between two lines of counts; the second after `FREQUENT_S`, and where nothing was recorded meanwhile."""
FREQUENT_S = 600.0


def make_display(style: ProgressStyle, stream: TextIO) -> Display:
    """The display of a style; `auto`: rich for a terminal that can move its cursor, else plain."""
    moves = stream.isatty() and os.environ.get("TERM") != "dumb"
    if style is ProgressStyle.RICH or (style is ProgressStyle.AUTO and moves):
        from vidpipe.cli.display_rich import RichDisplay

        return RichDisplay(stream)
    if style is ProgressStyle.JSONL:
        return JsonDisplay(stream)
    return QuietDisplay(stream) if style is ProgressStyle.NONE else PlainDisplay(stream)


class PlainDisplay:
    """Lines for logs: each change of state, and the counts every ten seconds, later every minute."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._began_s = self._printed_s = clock()
        self._recorded = 0

    def begin(self, rows: int, done: int) -> None:
        """See `Display.begin`."""
        self._recorded = done
        self._print(counted(rows, "row") + (f", {done} done before" if done else ""))

    def state(self, text: str) -> None:
        """See `Display.state`."""
        self._print(text)

    def warn(self, text: str) -> None:
        """See `Display.warn`."""
        self._print(text)

    def row(self, row: OutputRow) -> None:
        """See `Display.row`."""

    def show(self, progress: Progress) -> None:
        """See `Display.show`."""
        now_s = self._clock()
        often = now_s - self._began_s < FREQUENT_S and progress.recorded > self._recorded
        if progress.phase != "ended" and now_s - self._printed_s >= (EVERY_S if often else LATER_EVERY_S):
            self._recorded = progress.recorded
            self._print(line_of(progress))

    def end(self) -> None:
        """See `Display.end`."""

    def _print(self, line: str) -> None:
        self._printed_s = self._clock()
        with suppress(OSError):  # a log that cannot be written is no reason to lose a run
            self._stream.write(f"{line}\n")
            self._stream.flush()


class QuietDisplay(PlainDisplay):
    """Only what goes wrong."""

    def begin(self, rows: int, done: int) -> None:
        """See `Display.begin`."""

    def state(self, text: str) -> None:
        """See `Display.state`."""

    def show(self, progress: Progress) -> None:
        """See `Display.show`."""


class JsonDisplay(PlainDisplay):
    """A JSON document a line: at each change of state and phase, every ten seconds, and at the end."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        from vidpipe.job.progress import Progress

        super().__init__(stream, clock)
        self._last = Progress()

    def begin(self, rows: int, done: int) -> None:
        """See `Display.begin`."""
        from dataclasses import replace

        self._tell(replace(self._last, rows=rows, recorded=done))

    def state(self, text: str) -> None:
        """See `Display.state`."""
        from dataclasses import replace

        self._tell(replace(self._last, message=text))

    def warn(self, text: str) -> None:
        """See `Display.warn`."""
        self.state(text)

    def show(self, progress: Progress) -> None:
        """See `Display.show`."""
        changed = progress.phase != self._last.phase
        if changed or self._clock() - self._printed_s >= EVERY_S:
            self._tell(progress)
        else:
            self._last = progress

    def _tell(self, progress: Progress) -> None:
        from vidpipe.cli.documents_of_progress import progress_document

        self._last = progress
        self._print(progress_document(progress, datetime.now(UTC)).model_dump_json())


def line_of(progress: Progress) -> str:
    """The counts in a line."""
    parts = [f"{progress.recorded} of {counted(progress.rows, 'row')}"]
    if progress.recorded_here != progress.recorded:
        parts.append(f"{progress.recorded_here} by this process")
    kinds = ", ".join(f"{failed.rows} {failed.kind}" for failed in progress.failures)
    parts.append(f"{progress.failed} failed" + (f" ({kinds})" if kinds else ""))
    if progress.rows_per_s is not None:
        parts.append(f"{progress.rows_per_s:.1f} rows/s")
    if progress.seconds_left is not None and progress.rows_per_s:
        parts.append(f"{duration(progress.seconds_left)} left")
    if progress.waits_for is not None:
        parts.append(f"the engine waits for {WAITS_FOR[progress.waits_for]}")
    elif progress.phase == "running":
        parts.append(f"engine busy {progress.busy.engine:.0%}")
    return ", ".join(parts)


WAITS_FOR = {
    "engine_start": "its start",
    "clips": "clips",
    "other_processes": "shards of other processes",
}
"""What a process may wait for, for people."""


def duration(seconds: float) -> str:
    """Hours, minutes and seconds."""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}" if whole >= 60 else f"{whole} s"
