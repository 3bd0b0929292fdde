"""`vidpipe doctor`: is this machine ready, and if not, what to type."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from vidpipe.cli import exit_codes


def doctor(
    target: Annotated[
        Path | None, typer.Argument(metavar="[RECIPE|FOLDER|FILE]", help="As for run: also look at its checkpoint.")
    ] = None,
    prompt: Annotated[str | None, typer.Option("-p", "--prompt", help="As for run.")] = None,
    assignments: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="As for run.")] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of runs to look at.")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Look at Python, engine, GPU, decoders, shared memory and file system; with a recipe, at its checkpoint.

    Exit codes: 0 nothing stands in a run's way (warnings may); 2 something does.
    """
    from vidpipe.cli.documents import DoctorDocument, FindingDocument
    from vidpipe.cli.recipe_options import recipe_from
    from vidpipe.doctor.checkpoint import checkpoint
    from vidpipe.doctor.engine import engine
    from vidpipe.doctor.machine import machine
    from vidpipe.errors import RecipeError

    if target is None and (prompt is not None or assignments):
        raise RecipeError("-p and --set say what to change of a recipe, and none is named. Type it first.")
    loaded = None if target is None else recipe_from(target, prompt, assignments or [])
    named = loaded.recipe.engine if loaded is not None and "name" in loaded.recipe.engine.model_fields_set else None
    findings = [*machine(output), *engine(None if named is None or named.name == "fake" else named.name)]
    if loaded is not None:
        loads_weights = loaded.recipe.engine.args.get("load_format") != "dummy"
        findings += checkpoint(loaded.recipe.model.path, loaded.folder, weights=loads_weights)
    failed = any(found.level == "error" for found in findings)
    if as_json:
        listed = [
            FindingDocument(about=found.about, level=found.level, found=found.found, advice=found.advice)
            for found in findings
        ]
        typer.echo(DoctorDocument(ready=not failed, findings=listed).model_dump_json())
    else:
        for found in findings:
            typer.echo(f"{found.level:8} {found.about}: {found.found}")
            if found.advice is not None:
                typer.echo(f"{'':9}-> {found.advice}")
        typer.echo("not ready" if failed else "ready")
    sys.exit(exit_codes.WRONG_INPUT if failed else exit_codes.DONE)
