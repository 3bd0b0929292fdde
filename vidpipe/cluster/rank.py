"""Which share of a run Slurm's variables mean, for hosts that share no disk. Pure.

A wrong guess answers rows twice or never, so anything that does not add up is refused:
an array given as a list, one with a hole, a missing count, a number that stands for none.
"""

from __future__ import annotations

from collections.abc import Mapping

from vidpipe.errors import ClusterError

NO_VALUE = frozenset({0xFFFFFFFE, 0xFFFFFFFF})
"""Slurm's NO_VAL and INFINITE (slurm.h), as they leak into variables."""
_ARRAY = "SLURM_ARRAY_TASK_"


def rank_and_world(environment: Mapping[str, str]) -> tuple[int, int]:
    """(i, n): this process takes the i-th of n shares; (0, 1) outside of an array and of srun.

    Raises:
        ClusterError: `array_shape`.
    """
    rank, world = _of_array(environment) if _in_array(environment) else (0, 1)
    if "SLURM_STEP_NUM_TASKS" in environment:  # under srun each array task may be several processes
        of_step = _number(environment, "SLURM_STEP_NUM_TASKS")
        in_step = _number(environment, "SLURM_PROCID")
        if in_step >= of_step:
            raise _error(f"SLURM_PROCID={in_step} is not below SLURM_STEP_NUM_TASKS={of_step}")
        return rank * of_step + in_step, world * of_step
    if environment.get("SLURM_PROCID", "0") != "0":
        raise _error(f"SLURM_PROCID={environment['SLURM_PROCID']}, but SLURM_STEP_NUM_TASKS is not set")
    return rank, world


def _in_array(environment: Mapping[str, str]) -> bool:
    return any(name.startswith("SLURM_ARRAY_") for name in environment)


def _of_array(environment: Mapping[str, str]) -> tuple[int, int]:
    index, first, last, count = (_number(environment, _ARRAY + name) for name in ("ID", "MIN", "MAX", "COUNT"))
    step = _number(environment, _ARRAY + "STEP") if _ARRAY + "STEP" in environment else 1
    said = f"task {index} of {count}, indices {first} to {last} in steps of {step}"
    if count < 1 or step < 1 or last != first + (count - 1) * step:
        raise _error(f"{said}: that is not a whole range, and how many shares there are is unknown")
    rank, rest = divmod(index - first, step)
    if rest or not 0 <= rank < count:
        raise _error(f"{said}: this task is none of them")
    return rank, count


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment.get(name)
    if text is None:
        raise _error(f"{name} is not set, though this is a task")
    if not (text.isascii() and text.isdecimal()) or int(text) in NO_VALUE:
        raise _error(f"{name}={text} is no number of a task")
    return int(text)


def _error(what: str) -> ClusterError:
    return ClusterError(
        "array_shape",
        f"array_shape: {what}. Type --shard I/N; or share the run directory, without --shard: any tasks will do.",
    )
