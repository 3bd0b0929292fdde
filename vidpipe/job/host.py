"""Cores and memory that this process may use: a container, or a job of a scheduler, has less than its host."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath


def cores() -> int:
    """Cores that this process may run on, and not more than Slurm gave to each of its tasks."""
    allowed = len(os.sched_getaffinity(0))
    given = os.environ.get("SLURM_CPUS_PER_TASK", "")
    return min(allowed, max(1, int(given))) if given.isdecimal() else allowed


def memory(root: Path = Path("/")) -> int:
    """Bytes: the host's, or the lowest limit of the control groups (cgroups(7), both versions) of this process.

    Args:
        root: Where `proc` and `sys` are.
    """
    lines = (root / "proc/meminfo").read_text().splitlines()
    total = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemTotal:"))
    limits = (text for path in _limit_files(root) if (text := _read(path)).isdigit())  # "max" is no limit
    return min([total, *map(int, limits)])


def _limit_files(root: Path) -> Iterator[Path]:
    """Of the groups and all that they are in: a scheduler limits the job, and the process sits deeper."""
    mounted = root / "sys/fs/cgroup"
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        group = PurePosixPath(path.lstrip("/"))
        for folder in (group, *group.parents):
            if not controllers:
                yield mounted / folder / "memory.max"
            elif "memory" in controllers.split(","):
                yield mounted / "memory" / folder / "memory.limit_in_bytes"


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
