"""Who holds a lease, and whether that process is certainly gone.

On its own host a dead process is seen at once, so that a killed run typed again does not
wait for the lease to run out. From another host, or another container, only the
heartbeat tells.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def this_process() -> dict[str, Any]:
    """What a lease says of the process that takes it."""
    return {
        **_identity(os.getpid()),
        "slurm_task": slurm_task(os.environ),
        "taken": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def slurm_task(environment: Mapping[str, str]) -> str | None:
    """How Slurm's commands call this task alone; None outside of a job.

    The bare job number of an array's last task is the whole array's.
    """
    array, index = environment.get("SLURM_ARRAY_JOB_ID"), environment.get("SLURM_ARRAY_TASK_ID")
    return f"{array}_{index}" if array and index else environment.get("SLURM_JOB_ID")


def is_gone(holder: Mapping[str, Any]) -> bool:
    """Whether the holder ran here and runs no more; False when that cannot be known."""
    here = _identity(os.getpid())
    if any(holder.get(key) != here[key] or here[key] is None for key in ("host", "boot", "namespace")):
        return False
    return bool(_identity(holder["pid"])["began"] != holder["began"])


def _identity(pid: int) -> dict[str, Any]:
    """A process as no other process on any host is: number, start, boot and process namespace."""
    boot = namespace = began = None
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = str(Path("/proc/self/ns/pid").readlink())
    with suppress(OSError):
        # The name in brackets may hold spaces; the start time is the 20th field behind it.
        began = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return {"host": os.uname().nodename, "pid": pid, "boot": boot, "namespace": namespace, "began": began}
