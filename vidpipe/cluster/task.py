"""One task of an array: begins a little after its neighbours, and asks for another go when it is told to stop."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from vidpipe.cluster.slurm import requeue, state
from vidpipe.errors import RecipeError
from vidpipe.job.signals import SCHEDULERS, interrupted_by_signals
from vidpipe.record.holder import slurm_task

STAGGER_S, STAGGERED = 0.5, 20
"""Tasks start half a second apart, the 21st with the first: a checkpoint is read once and not 64 times at a blow."""


@contextmanager
def requeued_when_stopped(interrupted: int) -> Iterator[None]:
    """Inside, work that exits with the code `interrupted` when signalled; then Slurm is asked to run this task again.

    Also before the work has handlers of its own, and after. A task that its user has
    cancelled is not put back: it gets the same signal, but Slurm no longer calls it running.
    Nor is one whose node Slurm has given up and which runs elsewhere by now: when the node is
    back, this process is a left-over, and asking would end the one that does the work.
    """
    with interrupted_by_signals():
        try:
            index = os.environ.get("SLURM_ARRAY_TASK_ID", "")
            time.sleep(int(index) % STAGGERED * STAGGER_S if index.isdecimal() else 0)
            yield
        except KeyboardInterrupt:
            _ask_for_another_go()
            raise
        except SystemExit as end:
            if end.code == interrupted:
                _ask_for_another_go()
            raise


def _ask_for_another_go() -> None:
    for number in SCHEDULERS:
        signal.signal(number, signal.SIG_IGN)  # Slurm ends what it requeues
    task = slurm_task(os.environ)
    if task is None:
        return
    try:
        if state(task) == ("RUNNING", int(os.environ.get("SLURM_RESTART_COUNT", "0"))):
            _say(f"asking Slurm to queue task {task} again")
            requeue(task)
    except RecipeError as error:
        _say(f"task {task} is not queued again: {error}\nvidpipe slurm resubmit goes on where it stopped.")


def _say(text: str) -> None:
    print(f"vidpipe: {text}", file=sys.stderr, flush=True)  # noqa: T201
