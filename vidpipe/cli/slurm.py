"""`vidpipe slurm`: workers for a run as an array job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vidpipe.cli import exit_codes

if TYPE_CHECKING:
    from vidpipe.cluster.submission import Submission

RecipeFile = Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe file.")]
RunDirOption = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="RUN_DIR", help="Run directory [runs/<recipe name>].")
]
Assignments = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="As for run.")]
Tasks = Annotated[int, typer.Option(min=1, help="Workers; each starts an engine of its own.")]
Gpus = Annotated[int | None, typer.Option(min=0, help="GPUs of a worker [as many as the recipe's engine takes].")]
Time = Annotated[str | None, typer.Option(metavar="H:MM:SS", help="Limit of a task [the partition's].")]
Partition = Annotated[str | None, typer.Option(help="Slurm partition [the site's default].")]
Grace = Annotated[int, typer.Option(min=1, help="Seconds before the limit at which a task stops and is requeued.")]
MaxParallel = Annotated[int | None, typer.Option(min=1, help="Tasks that may run at once [no limit].")]
Sbatch = Annotated[
    list[str] | None, typer.Option("--sbatch", metavar="KEY=VALUE", help="Further option of sbatch; may be repeated.")
]
Template = Annotated[Path | None, typer.Option(help="A Jinja2 template to use in place of vidpipe's own.")]


def render(
    recipe: RecipeFile,
    run_dir: RunDirOption = None,
    assignments: Assignments = None,
    tasks: Tasks = 1,
    gpus_per_task: Gpus = None,
    time: Time = None,
    partition: Partition = None,
    signal_grace: Grace = 120,
    max_parallel: MaxParallel = None,
    sbatch: Sbatch = None,
    template: Template = None,
) -> None:
    """Print the script that submit would hand to sbatch; nothing else happens."""
    from vidpipe.cluster.script import array_script

    asked = (tasks, gpus_per_task, time, partition, signal_grace, max_parallel, sbatch, template)
    typer.echo(array_script(_submission(recipe, run_dir, assignments, *asked)), nl=False)


def submit(
    recipe: RecipeFile,
    run_dir: RunDirOption = None,
    assignments: Assignments = None,
    tasks: Tasks = 1,
    gpus_per_task: Gpus = None,
    time: Time = None,
    partition: Partition = None,
    signal_grace: Grace = 120,
    max_parallel: MaxParallel = None,
    sbatch: Sbatch = None,
    template: Template = None,
) -> None:
    """Submit workers, and a job that merges and scores after them; type it again for more workers."""
    asked = (tasks, gpus_per_task, time, partition, signal_grace, max_parallel, sbatch, template)
    _submit(_submission(recipe, run_dir, assignments, *asked))


def resubmit(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="A run that was submitted before.")],
    tasks: Annotated[int | None, typer.Option(min=1, help="Workers [as many as the last time].")] = None,
) -> None:
    """Submit workers as the last time; they go on where the run stands."""
    from dataclasses import replace

    from vidpipe.cluster.jobs import last_submission

    last = last_submission(run_dir)
    _submit(replace(last, tasks=tasks or last.tasks, run_dir=str(run_dir.absolute())))


def cancel(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="A run that was submitted.")],
) -> None:
    """Cancel all Slurm jobs of a run; what is recorded stays."""
    from vidpipe.cluster.jobs import cancel_jobs

    cancelled = cancel_jobs(run_dir)
    typer.echo(f"cancelled {', '.join(cancelled)}; vidpipe slurm resubmit {run_dir} goes on")


def task(recipe: RecipeFile, run_dir: RunDirOption, assignments: Assignments = None) -> None:
    """Work as one task of an array, as run does; asked to stop, ask Slurm for another go."""
    from vidpipe.cli.run import run
    from vidpipe.cluster.task import requeued_when_stopped

    with requeued_when_stopped(exit_codes.INTERRUPTED):
        run(recipe, run_dir, None, assignments)


def slurm(wrap: Callable[[Callable[..., None]], Callable[..., None]]) -> typer.Typer:
    """The commands as a group; `wrap` turns their errors into exit codes."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Answer a run's rows with a Slurm array.")
    for command in (submit, render, cancel, resubmit):
        group.command()(wrap(command))
    group.command(hidden=True)(wrap(task))  # for the scripts, not for users
    return group


def _submit(submission: Submission) -> None:
    from vidpipe.cluster.jobs import submit_jobs

    for job in submit_jobs(submission):
        what = (
            f"{job.tasks} tasks" if job.tasks else "merge" + (" and score" if submission.score else "") + " at the end"
        )
        typer.echo(f"{job.id}  {what}")
    typer.echo(f"vidpipe status {submission.run_dir}")


def _submission(
    recipe: Path,
    run_dir: Path | None,
    assignments: list[str] | None,
    tasks: int,
    gpus_per_task: int | None,
    time: str | None,
    partition: str | None,
    signal_grace: int,
    max_parallel: int | None,
    sbatch: list[str] | None,
    template: Path | None,
) -> Submission:
    """What is asked for; a recipe or manifest that every task would refuse is refused here."""
    from vidpipe.cli.recipe_options import default_run_dir
    from vidpipe.cluster.submission import Submission
    from vidpipe.engine.devices import devices_needed
    from vidpipe.job.prospect import look_ahead
    from vidpipe.recipe.load import load_recipe
    from vidpipe.record.run_dir import RunDir

    loaded = load_recipe(recipe, assignments or [])
    path = run_dir or default_run_dir(loaded)
    prospect = look_ahead(loaded, begun=RunDir(path).begun)
    prospect.manifest.raise_if_refused(prospect.manifest_path)
    needed = devices_needed(prospect.recipe.engine) if prospect.recipe.engine.name != "fake" else 0
    return Submission(
        recipe=str(recipe.resolve()),
        run_dir=str(path.absolute()),
        name=prospect.loaded.name,
        tasks=tasks,
        gpus_per_task=needed if gpus_per_task is None else gpus_per_task,
        assignments=tuple(assignments or ()),
        time=time,
        partition=partition,
        signal_grace_s=signal_grace,
        max_parallel=max_parallel,
        sbatch=tuple(sbatch or ()),
        template=str(template.resolve()) if template else None,
        score=prospect.recipe.scorer is not None or "scorer" in prospect.manifest.columns,
    )
