"""What a job or a container leaves of a host."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vidpipe.job.decoders import default_workers, most_workers
from vidpipe.job.host import cores, memory
from vidpipe.recipe.schema import Recipe

GIB = 1 << 30
JOB = "system.slice/slurmstepd.scope/job_7"


def host(root: Path, groups: str, **limits: str) -> Path:
    """A host of 16 GiB, as its files tell."""
    files = {"proc/meminfo": f"MemTotal: {16 * GIB // 1024} kB\n", "proc/self/cgroup": groups, **limits}
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


@pytest.mark.parametrize(
    ("groups", "limits", "gib"),
    [
        ("", {}, 16),
        ("0::/\n", {"sys/fs/cgroup/memory.max": f"{4 * GIB}\n"}, 4),  # a container with a name space of its own
        ("0::/\n", {"sys/fs/cgroup/memory.max": "max\n"}, 16),
        (
            f"0::/{JOB}/step_batch/user/task_0\n",
            {
                f"sys/fs/cgroup/{JOB}/step_batch/user/task_0/memory.max": "max\n",
                f"sys/fs/cgroup/{JOB}/memory.max": f"{2 * GIB}\n",
            },
            2,
        ),
        (
            "5:cpuset:/x\n4:memory,hugetlb:/slurm/uid_0/job_7/step_batch\n0::/\n",
            {
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
                "sys/fs/cgroup/memory/slurm/uid_0/job_7/memory.limit_in_bytes": f"{3 * GIB}\n",
                "sys/fs/cgroup/cpuset/x/memory.limit_in_bytes": "1\n",
            },
            3,
        ),
        ("4:memory:/docker/of-the-host\n", {"sys/fs/cgroup/memory/memory.limit_in_bytes": f"{5 * GIB}\n"}, 5),
    ],
)
def test_the_lowest_limit_holds(groups: str, limits: dict[str, str], gib: int, tmp_path: Path) -> None:
    assert memory(host(tmp_path, groups, **limits)) == gib * GIB


def test_here_there_is_some() -> None:
    assert memory() > GIB // 4 and cores() >= 1


@pytest.mark.parametrize(("given", "found"), [(None, 12), ("4", 4), ("64", 12), ("x", 12), ("0", 1)])
def test_cores_of_a_task(given: str | None, found: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(12)))
    monkeypatch.delenv("SLURM_CPUS_PER_TASK", raising=False)
    if given is not None:
        monkeypatch.setenv("SLURM_CPUS_PER_TASK", given)
    assert cores() == found
    recipe = Recipe.model_validate({"manifest": "rows.jsonl", "model": {"path": "x"}})
    assert default_workers(recipe) == max(1, found // 2) and most_workers(recipe) == max(1, found - 1)
    assert default_workers(recipe, engine_on_gpu=True) == max(1, found - 1), "the engine's share is small"
    assert most_workers(recipe, engine_on_gpu=True) == found, "workers give way to it"
