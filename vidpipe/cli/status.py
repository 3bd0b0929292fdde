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
    from vidpipe.cli.documents import StatusDocument
    from vidpipe.record.status import read_status

    found = read_status(run_dir)
    if as_json:
        typer.echo(StatusDocument.model_validate(asdict(found)).model_dump_json())
        return
    by_status = ", ".join(f"{count} {name}" for name, count in sorted(found.statuses.items()))
    typer.echo(f"{found.recorded} of {found.rows} rows" + (f" ({by_status})" if by_status else ""))
    typer.echo(f"{found.shards_done} of {found.shards} shards")
    for worker in found.workers:
        held = ", ".join(map(str, worker.shards))
        typer.echo(f"{worker.host} process {worker.pid}: shard {held}, alive {worker.heartbeat_age_s:.0f} s ago")
    if not found.workers and found.recorded < found.rows:
        typer.echo("nobody is at work; the same vidpipe run goes on")
    elif found.rows_per_s and found.seconds_left:
        typer.echo(f"{found.rows_per_s:.2f} rows/s since the run began, {found.seconds_left:.0f} s left")
