"""`vidpipe status`: how far a run is, from any terminal or host that sees its directory."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer


def status(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="A run directory.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Show rows, shards and the processes at work; reads only."""
    from vidpipe.cli.documents import SlurmJobDocument, StatusDocument
    from vidpipe.cluster.jobs import read_jobs
    from vidpipe.cluster.slurm import states
    from vidpipe.record.status import read_status

    jobs = read_jobs(run_dir)
    known = states([job.id for job in jobs]) if jobs else {}
    slurm = [
        SlurmJobDocument(job=job.id, tasks=job.tasks, states=None if known is None else known[job.id]) for job in jobs
    ]
    found = read_status(run_dir)
    if as_json:
        typer.echo(StatusDocument.model_validate(asdict(found) | {"slurm_jobs": slurm}).model_dump_json())
        return
    by_status = ", ".join(f"{count} {name}" for name, count in sorted(found.statuses.items()))
    typer.echo(f"{found.recorded} of {found.rows} rows" + (f" ({by_status})" if by_status else ""))
    typer.echo(f"{found.shards_done} of {found.shards} shards")
    for job in slurm:
        typer.echo(f"Slurm job {job.job}, {f'{job.tasks} tasks' if job.tasks else 'merge'}: {_states(job.states)}")
    for worker in found.workers:
        held = ", ".join(map(str, worker.shards))
        who = f"Slurm task {worker.slurm_task}, " if worker.slurm_task else ""
        age_s = worker.heartbeat_age_s
        typer.echo(f"{who}{worker.host} process {worker.pid}: shard {held}, alive {age_s:.0f} s ago")
    waiting = (found.recorded < found.rows or not found.rows) and any(
        {"PENDING", "CONFIGURING"} & (job.states or {}).keys() for job in slurm if job.tasks
    )
    if not found.workers and waiting:
        typer.echo("nobody is at work yet; tasks wait in Slurm's queue")
    elif not found.workers and found.recorded < found.rows:
        typer.echo("nobody is at work; the same vidpipe run goes on")
    elif found.rows_per_s and found.seconds_left:
        typer.echo(f"{found.rows_per_s:.2f} rows/s since the run began, {found.seconds_left:.0f} s left")


def _states(states: dict[str, int] | None) -> str:
    if states is None:
        return "Slurm cannot be asked here"
    return (
        ", ".join(f"{count} {name.lower()}" for name, count in sorted(states.items())) or "over, Slurm has forgotten it"
    )
