"""`vidpipe run`: answer every row of a manifest, or every clip of a folder."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidpipe.cli import exit_codes
from vidpipe.cli.progress_style import ProgressStyle

if TYPE_CHECKING:
    from vidpipe.job.run import RunResult
    from vidpipe.recipe.schema import Recipe


def run(
    target: Annotated[Path, typer.Argument(metavar="RECIPE|FOLDER|FILE", help="A recipe, or clips together with -p.")],
    run_dir: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="RUN_DIR", help="Run directory [runs/<recipe name>].")
    ] = None,
    prompt: Annotated[str | None, typer.Option("-p", "--prompt", help="The recipe's prompt; needed for clips.")] = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a recipe value; may be repeated.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=0, help="Answer the first N rows only.")] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="For hosts that share no disk: take the I-th (from 0) of N shares only; slurm: by the array index.",
        ),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget an earlier run in RUN_DIR.")] = False,
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            metavar="ray[:ADDRESS]",
            help="engine.data_parallel engines on a Ray cluster, which all see RUN_DIR; clips are decoded on any node.",
        ),
    ] = None,
    progress: Annotated[
        ProgressStyle,
        typer.Option(
            help="On standard error: rich on a terminal, else plain lines; jsonl for programs (docs/progress.md); "
            "none shows only what goes wrong."
        ),
    ] = ProgressStyle.AUTO,
) -> None:
    """Answer all rows; typed again, it goes on where it stopped.

    Exit codes: 0 done; 1 done, but more rows failed than output.tolerance allows (where the recipe
    sets one, the run ends as soon as that is certain); 2 wrong recipe, manifest or arguments;
    3 the engine failed; 70 an error that vidpipe does not know; 75 interrupted, type it again.
    """
    from vidpipe.job.signals import interrupted_by_signals

    with interrupted_by_signals():
        code = _answer(target, run_dir, prompt, assignments or [], limit, shard, fresh, on, progress)
    sys.exit(code)


def _answer(
    target: Path,
    run_dir: Path | None,
    prompt: str | None,
    assignments: list[str],
    limit: int | None,
    shard: str | None,
    fresh: bool,
    on: str | None,
    progress: ProgressStyle,
) -> int:
    """See `run`; returns the exit code."""
    from vidpipe.cli.display import make_display
    from vidpipe.cli.on_ray import OnRay
    from vidpipe.cli.recipe_options import default_run_dir, recipe_from, warn_of_budget
    from vidpipe.cli.terminal import own_terminal
    from vidpipe.job.prospect import look_ahead
    from vidpipe.job.run import run as run_job
    from vidpipe.record.run_dir import RunDir

    share = _share(shard)
    loaded = recipe_from(target, prompt, assignments)
    on_ray = None if on is None else OnRay(on, shard, loaded)
    path = run_dir or default_run_dir(loaded)
    begun = RunDir(path).begun and not fresh
    prospect = look_ahead(loaded if on_ray is None else on_ray.loaded, begun=begun)
    warn_of_budget(prospect)
    with own_terminal() as terminal:
        display = make_display(progress, terminal)
        try:
            with nullcontext() if on_ray is None else on_ray.connected(limit, display) as elsewhere:
                result = run_job(prospect, path, display, fresh=fresh, limit=limit, share=share, elsewhere=elsewhere)
        finally:
            display.end()  # also where planning failed: the terminal's cursor comes back
    return _report(result, prospect.recipe)


def _share(shard: str | None) -> tuple[int, int]:
    from vidpipe.cluster.rank import rank_and_world
    from vidpipe.errors import RecipeError

    if shard == "slurm":
        return rank_and_world(os.environ)
    part, slash, parts = (shard or "0/1").partition("/")
    if not (slash and part.isdecimal() and parts.isdecimal() and int(part) < int(parts)):
        raise RecipeError(f"--shard {shard} is not I/N with 0 <= I < N. Examples: --shard 0/4, --shard slurm")
    return int(part), int(parts)


def _report(result: RunResult, recipe: Recipe) -> int:
    """Print how the run ended; return the exit code."""
    from vidpipe.cli.summary import print_summary
    from vidpipe.job.tolerance import tolerated

    if result.interrupted:
        code = exit_codes.INTERRUPTED
    elif result.stopped or not tolerated(result.summary.statuses, recipe.output.tolerance):
        code = exit_codes.ROWS_FAILED
    else:
        code = exit_codes.DONE
    print_summary(result, recipe, code)
    return code
