"""`vidpipe status`: how far a run is, from any terminal or host that sees its directory."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidpipe.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from vidpipe.cli.documents_of_progress import SlurmJobDocument
    from vidpipe.record.status import RunStatus
    from vidpipe.record.workers import Worker

MOST_WORKERS, MOST_SHARDS = 50, 8
"""Processes that are named, and shards of each; all are in the JSON."""
SLURM_EVERY_S = 30.0
"""Between two questions to Slurm while watching."""


def status(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="A run directory.")],
    watch: Annotated[bool, typer.Option("--watch", help="Look again and again, until all rows are recorded.")] = False,
    every: Annotated[
        float, typer.Option("--every", min=0.1, metavar="SECONDS", help="Between two looks of --watch.")
    ] = 2.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON document on standard output; with --watch one a line.")
    ] = False,
) -> None:
    """Show rows, failures, the processes at work and the time left; reads only."""
    from vidpipe.cli.documents_of_progress import StatusDocument
    from vidpipe.record.status import StatusReader

    reader, jobs = StatusReader(run_dir), _SlurmJobs(run_dir)
    with _Screen(live=watch and not as_json) as screen, suppress(KeyboardInterrupt):  # how a watch is ended
        while True:
            found, slurm = reader.read(), jobs.read()
            if as_json:
                document = StatusDocument.model_validate(asdict(found) | {"slurm_jobs": slurm})
                typer.echo(document.model_dump_json())
            else:
                screen.show(list(lines_of(found, slurm)))
            if not watch or (found.rows and found.recorded >= found.rows):
                return
            time.sleep(every)


class _SlurmJobs:
    """The run's Slurm jobs; Slurm itself is asked now and then only."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir, self._ask_at_s = run_dir, 0.0
        self._known: list[SlurmJobDocument] = []

    def read(self) -> list[SlurmJobDocument]:
        from vidpipe.cli.documents_of_progress import SlurmJobDocument
        from vidpipe.cluster.jobs import read_jobs
        from vidpipe.cluster.slurm import states

        if time.monotonic() >= self._ask_at_s:
            self._ask_at_s = time.monotonic() + SLURM_EVERY_S
            jobs = read_jobs(self._run_dir)
            known = states([job.id for job in jobs]) if jobs else {}
            self._known = [
                SlurmJobDocument(job=job.id, tasks=job.tasks, states=None if known is None else known[job.id])
                for job in jobs
            ]
        return self._known


class _Screen:
    """Lines on standard output; `live` ones replace those before them on a terminal."""

    def __init__(self, *, live: bool) -> None:
        from rich.console import Console

        self._console = Console(highlight=False)
        self._live = None
        if live and self._console.is_terminal:
            from rich.live import Live

            self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="crop")

    def __enter__(self) -> _Screen:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, lines: Sequence[str]) -> None:
        from rich.text import Text

        if self._live is None:
            typer.echo("\n".join(lines))
        else:
            self._live.update(Text("\n".join(lines), overflow="ellipsis", no_wrap=True), refresh=True)


def lines_of(found: RunStatus, slurm: Sequence[SlurmJobDocument]) -> Iterator[str]:
    """The state of a run for people."""
    from vidpipe.cli.display import duration

    by_status = ", ".join(f"{count} {name}" for name, count in sorted(found.statuses.items()))
    yield f"{found.recorded} of {counted(found.rows, 'row')}" + (f" ({by_status})" if by_status else "")
    yield f"{found.shards_done} of {counted(found.shards, 'shard')}"
    for failed in found.failures:
        example = " ".join(failed.example.split())
        yield f"{failed.rows} x {failed.kind}, for example: {example}"
    for job in slurm:
        yield f"Slurm job {job.job}, {f'{job.tasks} tasks' if job.tasks else 'merge'}: {_states(job.states)}"
    for worker in found.lost[:MOST_WORKERS]:
        yield f"lost: {_who(worker)}; no sign of life for {worker.heartbeat_age_s:.0f} s, another takes its place"
    unsound_first = sorted(found.workers, key=lambda worker: not worker.late)
    for worker in unsound_first[:MOST_WORKERS]:
        yield f"{_who(worker)}; {'; '.join(_at(worker))}"
    hidden = max(0, len(found.lost) - MOST_WORKERS) + max(0, len(found.workers) - MOST_WORKERS)
    if hidden:
        yield f"and {counted(hidden, 'process', 'processes')} more; --json names all"
    waiting = (found.recorded < found.rows or not found.rows) and any(
        {"PENDING", "CONFIGURING"} & (job.states or {}).keys() for job in slurm if job.tasks
    )
    if not found.workers and waiting:
        yield "nobody is at work yet; tasks wait in Slurm's queue"
    elif not found.workers and found.recorded < found.rows:
        yield "nobody is at work; the same vidpipe run goes on"
    elif found.rows_per_s and found.seconds_left:
        yield f"{found.rows_per_s:.2f} rows/s now, {duration(found.seconds_left)} left"


def _who(worker: Worker) -> str:
    task = f"Slurm task {worker.slurm_task}, " if worker.slurm_task else ""
    held = f"shard {', '.join(map(str, worker.shards[:MOST_SHARDS]))}" if worker.shards else "no shard"
    if len(worker.shards) > MOST_SHARDS:
        held += f" and {len(worker.shards) - MOST_SHARDS} more"
    return f"{task}{worker.host} process {worker.pid}: {held}"


def _at(worker: Worker) -> Iterator[str]:
    from vidpipe.cli.display import WAITS_FOR

    if worker.recorded is not None:
        rate = "" if worker.rows_per_s is None else f", {worker.rows_per_s:.2f} rows/s"
        yield f"{counted(worker.recorded, 'row')}{rate}"
    yield f"{'late: last' if worker.late else 'alive'} {worker.heartbeat_age_s:.0f} s ago"
    if worker.waits_for is not None:
        yield f"its engine waits for {WAITS_FOR.get(worker.waits_for, worker.waits_for)}"


def _states(states: dict[str, int] | None) -> str:
    if states is None:
        return "Slurm cannot be asked here"
    return (
        ", ".join(f"{count} {name.lower()}" for name, count in sorted(states.items())) or "over, Slurm has forgotten it"
    )
