"""Which devices and ports each engine of a group gets, as environment variables."""

from __future__ import annotations

import math
import os
import socket

from vidpipe.engine import vllm_environment
from vidpipe.errors import CapabilityError
from vidpipe.recipe.schema import EngineSection

VISIBLE = "CUDA_VISIBLE_DEVICES"
PARALLEL_ARGS = {
    "vllm": ("tensor_parallel_size", "pipeline_parallel_size"),
    "sglang": ("tp_size", "pp_size"),
    "fake": ("tensor_parallel_size", "pipeline_parallel_size"),
}
"""Arguments of each engine that say over how many devices one model is spread."""


def computes_on_gpu(settings: EngineSection) -> bool:
    """Whether the engine that the recipe names computes on GPUs here.

    Raises:
        EngineError: it is vLLM, and vLLM is not installed.
    """
    if settings.name == "sglang":
        return settings.args.get("device") != "cpu"
    return settings.name == "vllm" and not vllm_environment.is_cpu_build()


def devices_needed(settings: EngineSection) -> int:
    """Devices that the engines of a run take together."""
    each = (int(settings.args.get(name, 1)) for name in PARALLEL_ARGS[settings.name])
    return settings.data_parallel * math.prod(each)


def environments_of(settings: EngineSection) -> list[dict[str, str]]:
    """One environment for each of `data_parallel` engines: consecutive devices, as many as one model needs.

    Raises:
        CapabilityError: the devices that are visible do not suffice.
    """
    wanted = devices_needed(settings)
    each = wanted // settings.data_parallel
    said = os.environ.get(VISIBLE)
    names = [str(number) for number in range(wanted)] if said is None else [name for name in said.split(",") if name]
    if said and len(names) < wanted:
        raise CapabilityError(
            f"engine.data_parallel: {settings.data_parallel} engines of {each} GPU each need {wanted}; "
            f"{VISIBLE}={said} shows {len(names)}. Lower data_parallel, or show more."
        )
    ports = _free_ports(settings.data_parallel)
    return [
        {VISIBLE: ",".join(names[i * each : (i + 1) * each]), "VLLM_PORT": str(port)} for i, port in enumerate(ports)
    ]


def _free_ports(count: int) -> list[int]:
    """Ports from which each engine looks on for its own; far enough from each other not to be taken meanwhile."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [server.getsockname()[1] for server in held]
    finally:
        for server in held:
            server.close()
