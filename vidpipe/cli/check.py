"""`vidpipe check`: find what is wrong with a recipe and its manifest, without an engine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from vidpipe.cli import exit_codes
from vidpipe.wording import counted

MOST_LISTED = 100
"""Faults that are printed; all are in the JSON."""


def check(
    target: Annotated[Path, typer.Argument(metavar="RECIPE|FOLDER|FILE", help="A recipe, a manifest, or clips.")],
    prompt: Annotated[str | None, typer.Option("-p", "--prompt", help="As for run.")] = None,
    assignments: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="As for run.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """List every fault of the recipe and the manifest with file and line (100 of them; with --json all).

    Exit codes: 0 nothing is wrong with the recipe and the file as a whole (faulty rows cost
    themselves only); 2 the run would be refused, or could answer no row.
    """
    from vidpipe.cli.documents import CheckDocument, FaultDocument
    from vidpipe.cli.recipe_options import recipe_from, warn_of_budget
    from vidpipe.job.check import check_rows
    from vidpipe.job.prospect import read_named

    named = read_named(recipe_from(target, prompt, assignments or []))
    warn_of_budget(named)
    checked = check_rows(named)
    if as_json:
        listed = [FaultDocument(kind=f.kind, line=f.line, id=f.id, message=f.message) for f in checked.faults]
        typer.echo(CheckDocument(rows=checked.rows, faults=listed).model_dump_json())
    else:
        for fault in checked.faults[:MOST_LISTED]:
            typer.echo(f"{named.manifest_path}: {fault.kind}: {fault.message}")
        if (rest := len(checked.faults) - MOST_LISTED) > 0:
            typer.echo(f"... and {rest} more; --json lists all")
        typer.echo(
            f"{counted(checked.rows, 'row')}, {counted(len(checked.faults), 'fault')}"
            + (": no row can be answered" if checked.in_vain else "")
        )
    sys.exit(exit_codes.WRONG_INPUT if checked.refused or checked.in_vain else exit_codes.DONE)
