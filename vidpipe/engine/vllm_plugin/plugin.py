"""The entry point: vLLM calls `load` in every process of its own (group `vllm.general_plugins`).

Without a run of vidpipe that asks for repairs it does nothing, so that other users of the
same environment get the vLLM that they installed.
"""

from __future__ import annotations

import logging
from importlib import metadata

from vidpipe.engine import vllm_environment
from vidpipe.engine.vllm_plugin import settings
from vidpipe.engine.vllm_plugin.fingerprints import installed
from vidpipe.engine.vllm_plugin.gate import Finding, judge
from vidpipe.engine.vllm_plugin.repair import Repair
from vidpipe.engine.vllm_plugin.repairs import REPAIRS, get_repair
from vidpipe.errors import CapabilityError

GROUP = "vllm.general_plugins"
NAME = "vidpipe"

APPLIED, NOT_NEEDED = "applied", "not needed"
loaded: dict[str, str] = {}
"""Repairs that this process has dealt with -> `APPLIED` or `NOT_NEEDED`."""

_log = logging.getLogger("vllm.vidpipe")


def load() -> None:
    """Make the repairs that this run wants, in this process. Idempotent.

    Raises:
        CapabilityError: the installed vLLM has a fault that cannot be repaired.
    """
    told = settings.read()
    if told is None:
        return
    for name in REPAIRS:
        if name not in told.repairs or name in loaded:
            continue
        repair = get_repair(name)
        verdict = judge(name, examine(repair), told.unknown_version)
        if verdict.action == "refuse":
            raise CapabilityError(verdict.reason)
        if verdict.reason:
            _log.warning("vidpipe: repair %s: %s", name, verdict.reason)
        if verdict.action == "apply":
            repair.apply(told.repairs[name])
        loaded[name] = APPLIED if verdict.action == "apply" else NOT_NEEDED


def examine(repair: Repair) -> Finding:
    """Look at the installed vLLM with a repair's eyes."""
    version = vllm_environment.installed()[1].partition("+")[0]
    changed = [function for function, known in repair.relies_on.items() if installed(function) not in known]
    faults = [fault.name for fault in repair.faults if fault.probe()]
    return Finding(version, version in repair.tested, changed, faults)


def is_installed() -> bool:
    """Whether vLLM's processes will find the entry point."""
    return any(point.name == NAME for point in metadata.entry_points(group=GROUP))
