"""Slurm's own commands, and what their answers mean."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence

from vidpipe.errors import RecipeError

ANSWER_S = 60
"""A controller that is busy may take long; one that is away answers never."""
MAX_ARRAY_SIZE = 1001
"""Slurm's default, where it does not say."""
UNREACHABLE = re.compile("Unable to contact slurm controller|Could not establish a configuration source")
"""What Slurm's commands say where nobody listens, and where there is no slurm.conf."""
NO_CONTROLLER = (
    "From this host Slurm's controller cannot be reached. Type this where `sinfo` lists partitions, a login node of "
    "the cluster; or write the script here and hand it to sbatch there: vidpipe slurm render ... > job.sbatch"
)
FORGOTTEN = "Invalid job id"
"""What squeue says of a single job that it does not know; of several, it lists those that it knows."""


def submit(script: str, *options: str) -> str:
    """Hand a script to sbatch; returns the job's number.

    Raises:
        RecipeError: Slurm does not take it.
    """
    answer = _ask("sbatch", "--parsable", *options, script=script)
    return answer.strip().partition(";")[0]


def cancel(jobs: Sequence[str]) -> None:
    """End jobs, whether they run or wait; those that are over stay over."""
    _ask("scancel", *jobs)


def requeue(task: str) -> None:
    """Put one task back into its queue."""
    _ask("scontrol", "requeue", task)


def max_array_size() -> int:
    """Tasks that one array may have here."""
    found = re.search(r"^MaxArraySize\s*=\s*(\d+)", _ask("scontrol", "show", "config"), re.MULTILINE)
    return int(found.group(1)) if found else MAX_ARRAY_SIZE


def states(jobs: Sequence[str]) -> dict[str, Counter[str]] | None:
    """How many tasks of each job are in which state; None where nobody can be asked.

    A hint only: Slurm forgets a job some minutes after its end.
    """
    if shutil.which("squeue") is None:
        return None
    try:
        answer = _ask("squeue", "--noheader", "--array", "--states=all", "--format=%F|%T", f"--jobs={','.join(jobs)}")
    except RecipeError as error:
        if FORGOTTEN not in str(error):
            return None
        answer = ""
    found = {job: Counter[str]() for job in jobs}
    for line in answer.splitlines():
        job, _, state = line.strip().partition("|")
        if job in found:
            found[job][state] += 1
    return found


def state(task: str) -> tuple[str, int] | None:
    """State of one task and how often it has been queued again; None when Slurm does not know it."""
    wanted = ("--noheader", "--array", "--states=all", "--Format=State:20,RestartCnt:20")
    words = _ask("squeue", *wanted, f"--jobs={task}").split()
    return (words[0], int(words[1])) if len(words) > 1 and words[1].isdecimal() else None


def _ask(*command: str, script: str | None = None) -> str:
    try:
        done = subprocess.run(
            command, input=script, capture_output=True, text=True, errors="replace", timeout=ANSWER_S, check=False
        )
    except FileNotFoundError:
        raise RecipeError(f"{command[0]} is not here. Type this on a host of the Slurm cluster.") from None
    except subprocess.TimeoutExpired:
        raise RecipeError(
            f"{command[0]} has not answered for {ANSWER_S} s. Is Slurm's controller up? (sinfo)"
        ) from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        advice = f"\n{NO_CONTROLLER}" if UNREACHABLE.search(said) else ""
        raise RecipeError(f"{' '.join(command)}: {said}{advice}")
    return done.stdout
