"""To a Ray cluster and away from it again; the one place that knows how Ray wants to be told.

Ray's own retries are off everywhere: it would repeat a row that kills its process for ever.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from vidpipe.cluster.ray_places import CORES_AN_ENGINE
from vidpipe.errors import CapabilityError, RecipeError
from vidpipe.extras import install
from vidpipe.job.host import cores
from vidpipe.redact import is_secret_name

PROBE_S = 5.0
PREFIXES = ("HF_", "TORCH_", "VLLM_", "XDG_CACHE_HOME")
"""Variables of the command's environment that the actors get too, without secrets."""


def address_of(place: str) -> str | None:
    """The address in `--on ray[:ADDRESS]`; None where Ray is to find one.

    Raises:
        RecipeError: it is no such place.
        CapabilityError: Ray is not installed.
    """
    name, _, address = place.partition(":")
    if name != "ray":
        raise RecipeError(
            f"--on {place}: not a place to run. Examples: --on ray, --on ray:10.0.0.1:6379; "
            "for Slurm: vidpipe slurm submit RECIPE"
        )
    if address.startswith("ray://"):
        raise RecipeError(
            f"--on {place}: Ray Client is not supported, for this process reads and writes the run directory that the "
            "nodes share. Type the command on a node of the cluster, with its host:port or with --on ray alone."
        )
    if find_spec("ray") is None:
        raise CapabilityError(f"--on ray: Ray is not installed here. Type: {install('ray')} (on every node).")
    return address or None


@contextmanager
def connected(address: str | None, engines: int) -> Iterator[Callable[[], None]]:
    """Inside, Ray's API works, until the end or until the given function is called; then the actors are gone.

    So is a cluster that was started here.

    Args:
        address: `host:port` of a cluster; None: the one that `RAY_ADDRESS` names or that runs on this host, and where
            there is none, one of this host alone.
        engines: So many are to find a place on a cluster that is started here.

    Raises:
        RecipeError: there is no cluster at `address`.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    variables = {
        name: value for name, value in os.environ.items() if name.startswith(PREFIXES) and not is_secret_name(name)
    }
    options = {
        "log_to_driver": False,  # actors write to the run directory
        "logging_level": "ERROR",
        # Modules come from where ours do, also from a checkout that is not installed.
        "runtime_env": {"env_vars": variables | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}},
    }
    running = address or running_here()
    if running is not None:
        try:
            _probe(running)
            ray.init(address=running, **options)
        except (OSError, ValueError, RuntimeError) as error:
            why = str(error).strip().partition("\n")[0]
            raise RecipeError(
                f"--on ray: no Ray cluster answers at {running}: {why}. `ray status` says whether it runs; one with a "
                "token wants its RAY_AUTH_MODE and RAY_AUTH_TOKEN here, too."
            ) from None
    else:
        # Loopback: a host without a network has no other address that its own processes reach.
        ray.init(
            address="local",
            num_cpus=max(cores(), CORES_AN_ENGINE * engines),
            include_dashboard=False,
            _node_ip_address="127.0.0.1",
            **options,
        )
    try:
        yield ray.shutdown
    finally:
        ray.shutdown()


def running_here() -> str | None:
    """The cluster that `RAY_ADDRESS` names, or that was last started on this host and still answers.

    The file is the one that `ray.init` says it looks at. It also does when that cluster is long gone, and waits for
    ever then.
    """
    if address := os.environ.get("RAY_ADDRESS"):
        return address
    try:
        address = (Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / "ray_current_cluster").read_text().strip()
        _probe(address)
    except (OSError, ValueError):
        return None
    return address


def _probe(address: str) -> None:
    """Raise OSError if nothing listens at `host:port`, ValueError if it is none: Ray itself waits for ever."""
    host, _, port = address.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), PROBE_S).close()
