"""vLLM's cache of compiled kernels, filled by one process for all that start at the same time."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def compiling(version: str, arguments: Mapping[str, Any]) -> Iterator[None]:
    """Start an engine inside: the first with these arguments alone, those after it together.

    Without this, N engines that start together compile the same kernels N times, and write
    the same files.

    Args:
        version: Name and version of the engine.
        arguments: Of `EngineArgs`.
    """
    if arguments.get("enforce_eager"):
        yield
        return
    text = json.dumps([version, arguments], sort_keys=True, default=str)
    mark = _root() / "vidpipe" / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.compiled"
    mark.parent.mkdir(parents=True, exist_ok=True)
    with mark.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if mark.exists():
            fcntl.flock(lock, fcntl.LOCK_UN)
        yield
        mark.touch()


def _root() -> Path:
    """Where vLLM keeps it; `vllm.envs` says the same, but importing that takes seconds."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("VLLM_CACHE_ROOT") or caches / "vllm")
