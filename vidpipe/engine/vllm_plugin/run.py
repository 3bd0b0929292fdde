"""The run's side of the plugin: say what is wanted before vLLM starts, and see that it is there afterwards.

Silently wrong positions in one process would spoil a run without a trace; so a run that
cannot be sure that its repairs are active does not go on.
"""

from __future__ import annotations

import os
from typing import Any

from vidpipe.engine import vllm_environment
from vidpipe.engine.interface import Demands
from vidpipe.engine.vllm_plugin import plugin, settings
from vidpipe.engine.vllm_plugin.repair import Situation
from vidpipe.engine.vllm_plugin.repairs import wanted
from vidpipe.engine.vllm_plugin.settings import PluginSettings
from vidpipe.engine.vllm_plugin.worker import EXTENSION, MISSING
from vidpipe.errors import EngineError
from vidpipe.recipe.schema import EngineSection


class PluginRun:
    """The repairs of one engine.

    Args:
        demands: What the run asks for.
        engine: The recipe's engine section.
    """

    def __init__(self, demands: Demands, engine: EngineSection) -> None:
        repairs = wanted(Situation(demands, vllm_environment.is_cpu_build()))
        users = engine.args.get("worker_extension_cls", "")
        self._told = PluginSettings(repairs, engine.unknown_version, users) if repairs else None

    @property
    def active(self) -> bool:
        """Whether workers have our methods."""
        return self._told is not None

    def engine_arguments(self) -> dict[str, Any]:
        """Arguments for vLLM's `EngineArgs`: without them no worker could be asked."""
        return {} if self._told is None else {"worker_extension_cls": EXTENSION}

    def begin(self) -> None:
        """Tell the processes that vLLM will start, and repair this one; before `EngineArgs` is made.

        vLLM loads plugins only once a process, so this process, which may have had an engine
        before, is not left to it.

        Raises:
            CapabilityError: the installed vLLM cannot be repaired.
            EngineError: vLLM's processes would not load the plugin.
        """
        settings.write(self._told)
        if self._told is not None:
            _check_entry_point()
            plugin.load()

    def verify(self, llm_engine: Any) -> None:
        """Ask every worker of the started engine.

        Raises:
            EngineError: a worker lacks a repair.
        """
        if self._told is None:
            return
        for rank, report in enumerate(llm_engine.collective_rpc("vidpipe_repairs")):
            for name in self._told.repairs:
                state = report.get(name, f"{MISSING}: the worker does not know of it")
                if state.startswith(MISSING):
                    raise EngineError(
                        "engine_start",
                        f"repair {name} in vLLM's worker {rank}: {state}. Nothing was answered, because answers could "
                        "be wrong without a sign of it. Remove the switch that needs the repair (docs/pruning.md).",
                    )


def _check_entry_point() -> None:
    """Before minutes are spent on a start that `verify` would end."""
    if os.environ.get("VLLM_ENABLE_V1_MULTIPROCESSING") == "0":
        return  # the worker is in this process
    if not plugin.is_installed():
        raise EngineError(
            "engine_start",
            f"the entry point {plugin.NAME} of {plugin.GROUP} is not installed, so vLLM's processes would not load "
            "vidpipe's repairs. Install vidpipe again (in a checkout: pip install -e .).",
        )
    allowed = os.environ.get("VLLM_PLUGINS")
    if allowed is not None and plugin.NAME not in allowed.split(","):
        raise EngineError(
            "engine_start",
            f"VLLM_PLUGINS is {allowed!r}, which keeps vidpipe's repairs out of vLLM's processes. Add {plugin.NAME} to "
            "it, or unset it.",
        )
