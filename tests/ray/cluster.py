"""A throw-away Ray cluster of this host, and the processes of a run on it."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from tests.conftest import ROOT

T = TypeVar("T")
_HEAD = """
import sys, ray
ray.init(address="local", _node_ip_address="127.0.0.1", num_cpus=int(sys.argv[1]), include_dashboard=False,
         object_store_memory=200 * 2**20, log_to_driver=False, logging_level="ERROR")
print(ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
"""
# With a token, as clusters have it that others can reach; Ray would keep one in the home folder by itself.
ENVIRONMENT = {
    "PYTHONPATH": str(ROOT),
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(16),
}


@contextmanager
def head(cores: int) -> Iterator[str]:
    """The address of a cluster whose one node says that it has so many cores."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HEAD, str(cores)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=os.environ | ENVIRONMENT,
    )  # fmt: skip
    assert process.stdout is not None and process.stdin is not None
    try:
        address = process.stdout.readline().strip()
        assert address, "Ray does not start"
        yield address
    finally:
        process.stdin.close()
        process.wait(timeout=60)
        process.stdout.close()


@contextmanager
def further_node(address: str, cores: int) -> Iterator[Callable[[], None]]:
    """One more node of a cluster, on this host too; the given function ends it with all its processes."""
    command = [sys.executable, "-c", "from ray.scripts.scripts import main; main()", "start", "--address", address]
    options = ["--num-cpus", str(cores), "--object-store-memory", str(100 * 2**20), "--block"]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        [*command, *options], stdout=quiet, stderr=quiet, env=os.environ | ENVIRONMENT, start_new_session=True
    )

    def lose() -> None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    try:
        yield lose
    finally:
        if process.returncode is None:
            lose()


def start(recipe: Path, *options: object) -> subprocess.Popen[bytes]:
    """`vidpipe run` in a process of its own; what it says is in `said` beside the recipe."""
    command = [sys.executable, "-m", "vidpipe", "run", str(recipe), *map(str, options)]
    with (recipe.parent / "said").open("ab") as said:
        return subprocess.Popen(command, cwd=recipe.parent, stdout=said, stderr=said, env=os.environ | ENVIRONMENT)


def pids(title: str, folder: Path) -> list[int]:
    """Processes of Ray actors with this class and method, of the run in `folder`: their output goes there."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes()
            variables = (process / "environ").read_bytes()
        except OSError:
            continue
        if words.startswith(f"ray::{title}".encode()) and str(folder).encode() in variables:
            found.append(int(process.name))
    return sorted(found)


def wait_until(found: Callable[[], T], timeout_s: float = 90) -> T:
    deadline_s = time.monotonic() + timeout_s
    while not (value := found()):
        assert time.monotonic() < deadline_s, "it does not come"
        time.sleep(0.05)
    return value
