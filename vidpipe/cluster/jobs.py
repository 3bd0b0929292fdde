"""The Slurm jobs of a run: submitted, remembered in its run directory, cancelled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from vidpipe.cluster import slurm
from vidpipe.cluster.script import array_script, merge_script
from vidpipe.cluster.submission import Submission, jobs_folder
from vidpipe.errors import RecipeError
from vidpipe.record.disk import read_mark, set_mark
from vidpipe.record.run_dir import RunDir


@dataclass(frozen=True)
class Job:
    """One job that was submitted."""

    id: str
    """Slurm's number of it; of an array, the number that all tasks share."""
    tasks: int
    """Tasks of an array; 0 for the job that merges."""
    submitted: str
    """When, in UTC."""


def submit_jobs(submission: Submission) -> Iterator[Job]:
    """Submit the arrays and the job after them; yields each as soon as it is remembered.

    Raises:
        RecipeError: Slurm refuses, or the run directory is something else; jobs submitted before stay.
    """
    RunDir(Path(submission.run_dir)).create()
    submission.folder.mkdir(exist_ok=True)
    arrays: list[str] = []
    for tasks in array_sizes(submission.tasks, slurm.max_array_size()):
        # The index selects nothing, so every array begins at 0. The next one waits: for the start of all tasks before,
        # or, where only so many may run at once, for their end.
        after = "afterany" if submission.max_parallel else "after"
        options = [f"--dependency={after}:{arrays[-1]}"] if arrays else []
        job = _submit(submission, array_script(replace(submission, tasks=tasks)), tasks, *options)
        arrays.append(job.id)
        yield job
    yield _submit(submission, merge_script(submission), 0, f"--dependency=afterany:{':'.join(arrays)}")


def array_sizes(tasks: int, most: int) -> list[int]:
    """Sizes of the fewest arrays for so many tasks; they differ by one at most."""
    arrays = -(-tasks // most)
    return [(tasks + place) // arrays for place in range(arrays)][::-1]


def read_jobs(run_dir: Path) -> list[Job]:
    """What was submitted for a run, in order; none is normal."""
    return [job for job, _ in _records(run_dir)]


def last_submission(run_dir: Path) -> Submission:
    """What was asked for the last time.

    Raises:
        RecipeError: nothing was submitted.
    """
    return Submission.restored(_require(run_dir)[-1][1])


def cancel_jobs(run_dir: Path) -> list[str]:
    """Cancel every job of a run; returns their numbers.

    Raises:
        RecipeError: nothing was submitted, or Slurm refuses.
    """
    jobs = [job.id for job, _ in _require(run_dir)]
    slurm.cancel(jobs)
    return jobs


def _submit(submission: Submission, script: str, tasks: int, *options: str) -> Job:
    job = Job(slurm.submit(script, *options), tasks, datetime.now(UTC).isoformat())
    (submission.folder / f"{job.id}.sh").write_text(script, encoding="utf-8")
    set_mark(submission.folder / f"{job.id}.json", {**vars(job), "submission": submission.stored()})
    return job


def _records(run_dir: Path) -> list[tuple[Job, dict[str, object]]]:
    values = [found for path in jobs_folder(run_dir).glob("*.json") if (found := read_mark(path)) is not None]
    values.sort(key=lambda found: found["submitted"])
    return [(Job(found["id"], found["tasks"], found["submitted"]), found["submission"]) for found in values]


def _require(run_dir: Path) -> list[tuple[Job, dict[str, object]]]:
    records = _records(run_dir)
    if not records:
        raise RecipeError(f"nothing was submitted for {run_dir}. Type: vidpipe slurm submit RECIPE -o {run_dir}")
    return records
