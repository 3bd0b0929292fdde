"""The repairs by name; nothing of vLLM is imported before one is applied."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from vidpipe.engine.vllm_plugin.repair import Repair, Situation

_HERE = "vidpipe.engine.vllm_plugin"
REPAIRS: Mapping[str, str] = {
    "pruned_qwen3_vl": f"{_HERE}.pruned_qwen3_vl",
    "cpu_pruning_flag": f"{_HERE}.cpu_pruning_flag",
    "encoder_graphs": f"{_HERE}.encoder_graphs",
    "ernie_cpu_rotary": f"{_HERE}.ernie_cpu_rotary",
}
"""Name -> the module whose `REPAIR` it is. Applied in this order."""


def get_repair(name: str) -> Repair:
    """The repair of that name."""
    repair: Repair = import_module(REPAIRS[name]).REPAIR
    return repair


def wanted(situation: Situation) -> dict[str, Mapping[str, Any]]:
    """Repairs that a run needs, with their options."""
    options = {name: get_repair(name).options(situation) for name in REPAIRS}
    return {name: told for name, told in options.items() if told is not None}
