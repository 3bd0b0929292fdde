"""A run on a terminal: bars for rows and stages, the queue, GPUs, failures; warnings stay above it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from vidpipe.cli.display import WAITS_FOR, duration
from vidpipe.record.row import OutputRow
from vidpipe.wording import counted

if TYPE_CHECKING:
    from vidpipe.job.gauges import Gauges
    from vidpipe.job.gpu import Gpu
    from vidpipe.job.progress import Progress

MOST_KINDS = 4
"""Kinds of failures that are shown; `vidpipe status` has all."""
BAR_WIDTH = 24


class RichDisplay:
    """Redrawn twice a second; gone at the end, when the summary takes its place."""

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream)
        # The engine's output goes to a file, and standard output is the summary's: nothing is to be redirected.
        self._live = Live(
            console=self._console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
        )
        self._state, self._progress = "", None

    _progress: Progress | None

    def begin(self, rows: int, done: int) -> None:
        """See `Display.begin`."""
        self._draw()

    def state(self, text: str) -> None:
        """See `Display.state`."""
        self._state = text
        self._draw()

    def warn(self, text: str) -> None:
        """See `Display.warn`."""
        self._live.start()
        self._console.print(Text(text))
        self.state(text.splitlines()[0])

    def row(self, row: OutputRow) -> None:
        """See `Display.row`."""

    def show(self, progress: Progress) -> None:
        """See `Display.show`."""
        self._progress = progress
        self._draw()

    def end(self) -> None:
        """See `Display.end`."""
        self._live.stop()

    def _draw(self) -> None:
        try:
            self._live.start()
            self._live.update(view(self._state, self._progress), refresh=True)
        except OSError:  # a terminal that is gone is no reason to lose a run
            return


def view(state: str, progress: Progress | None) -> Text:
    """One frame of the display; what is too long for the terminal ends in an ellipsis."""
    lines = [Text(state)]
    if progress is not None:
        gauges = progress.gauges
        if gauges is not None:
            lines[0].append(f"   {duration(gauges.wall_s)}", style="dim")
        lines.append(_line("rows", progress.recorded / max(1, progress.rows), _rows(progress)))
        if gauges is not None:
            lines += [_line(*stage) for stage in _stages(progress, gauges)]
            lines.append(_line("queue", gauges.media_bytes / max(1, gauges.media_limit_bytes), _queue(gauges)))
        lines += [_gpu(gpu, number, len(progress.gpus)) for number, gpu in enumerate(progress.gpus)]
        lines += [
            Text.assemble("failed  ", (f"{failed.rows} x {failed.kind}: ", "red"), " ".join(failed.example.split()))
            for failed in progress.failures[:MOST_KINDS]
        ]
        if more := sum(failed.rows for failed in progress.failures[MOST_KINDS:]):
            lines.append(Text(f"        {more} of other kinds"))
    return Text("\n", no_wrap=True, overflow="ellipsis").join(lines)


def _line(name: str, share: float, said: str) -> Text:
    full = round(min(1.0, max(0.0, share)) * BAR_WIDTH)
    style = "green" if share >= 1 else "cyan"
    return Text.assemble(f"{name:7} ", ("━" * full, style), ("━" * (BAR_WIDTH - full), "bright_black"), f" {said}")


def _gpu(gpu: Gpu, number: int, of: int) -> Text:
    memory = f"{_gib(gpu.memory_used_bytes)} of {_gib(gpu.memory_bytes)}, {gpu.name}"
    said = memory if gpu.busy is None else f"{gpu.busy:.0%}, {memory}"
    return _line(f"GPU {number}" if of > 1 else "GPU", gpu.busy or 0.0, said)


def _rows(progress: Progress) -> str:
    parts = [f"{progress.recorded:,} of {progress.rows:,}"]
    if progress.recorded_here != progress.recorded:
        parts.append(f"{progress.recorded_here:,} here")
    if progress.failed:
        parts.append(f"{progress.failed:,} failed")
    if progress.rows_per_s is not None:
        parts.append(f"{progress.rows_per_s:.1f} rows/s")
    if progress.seconds_left is not None and progress.rows_per_s:
        parts.append(f"{duration(progress.seconds_left)} left")
    return ", ".join(parts)


def _stages(progress: Progress, gauges: Gauges) -> list[tuple[str, float, str]]:
    busy, clips = progress.busy, max(1, gauges.clips)
    workers = f"{gauges.workers} worker" + ("s" if gauges.workers > 1 else "")
    engine = f"{busy.engine:.0%}"
    if progress.waits_for is not None:
        engine += f", waits for {WAITS_FOR[progress.waits_for]}"
    waited = ", ".join(f"{cause} {s:.1f} s" for cause, s in gauges.idle_s.items() if s >= 0.05)
    return [
        ("decode", busy.decode, f"{busy.decode:.0%} of {workers}, {gauges.decode_s / clips:.2f} s a clip"),
        ("prepare", busy.prepare, f"{busy.prepare:.0%}, {gauges.prepare_s / clips:.2f} s a clip"),
        ("engine", busy.engine, engine + (f"; idle so far: {waited}" if waited else "")),
    ]


def _queue(gauges: Gauges) -> str:
    return (
        f"{counted(gauges.clips_on_the_way, 'clip')} on the way, {counted(gauges.rows_ready, 'row')} ready, "
        f"{gauges.rows_in_engine} in the engine; media {_gib(gauges.media_bytes)} of {_gib(gauges.media_limit_bytes)}"
    )


def _gib(nbytes: int) -> str:
    return f"{nbytes / 2**30:.1f} GiB" if nbytes >= 2**30 else f"{nbytes / 2**20:.0f} MiB"
