"""What vLLM's workers answer about the repairs: methods that vLLM adds to its worker class in every process.

`worker_extension_cls` names `Extension`; the engine calls its methods by name through
`collective_rpc`, so that nothing needs to be pickled.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from vidpipe.engine.vllm_plugin import encoder_counters, plugin, settings
from vidpipe.engine.vllm_plugin.repairs import get_repair

EXTENSION = f"{__name__}.Extension"
MISSING = "missing"


class Report:
    """Methods of ours; none may exist in vLLM's worker classes."""

    def vidpipe_repairs(self) -> dict[str, str]:
        """Each wanted repair -> `applied`, `not needed`, or `missing` and why."""
        told = settings.read()
        return {} if told is None else {name: _state(name, self) for name in told.repairs}

    def vidpipe_encoder(self) -> dict[str, Any]:
        """What the encoder did since the run began; see `encoder_counters.Counters`."""
        return encoder_counters.report()

    def vidpipe_encoder_reset(self) -> None:
        """The run begins."""
        encoder_counters.reset()

    def vidpipe_time_encoder(self) -> dict[str, list[Any]]:
        """See `graph_timing.measure`."""
        from vidpipe.engine.vllm_plugin.graph_timing import measure

        return measure(self)

    def vidpipe_encoder_costs(self, timings: dict[str, list[Any]]) -> None:
        """Divide calls by these timings from now on; every worker must get the same."""
        from vidpipe.engine.vllm_plugin import graph_run
        from vidpipe.engine.vllm_plugin.graph_timing import costs_of

        graph_run.required().costs = costs_of(timings["replay"], timings["eager"])


def _state(name: str, worker: Any) -> str:
    if name not in plugin.loaded:
        return f"{MISSING}: the plugin was not loaded"
    if plugin.loaded[name] == plugin.APPLIED and not get_repair(name).active(worker):
        return f"{MISSING}: loaded, but not in effect"
    return plugin.loaded[name]


_extensions: dict[str, type] = {}


def __getattr__(name: str) -> type:
    """`Extension`: `Report` alone, or joined with the class that the user's own `worker_extension_cls` names."""
    if name != "Extension":
        raise AttributeError(name)
    told = settings.read()
    users = "" if told is None else told.worker_extension
    if users not in _extensions:
        bases: tuple[type, ...] = (Report,)
        if users:
            module, _, attribute = users.rpartition(".")
            bases = (Report, getattr(import_module(module), attribute))
        _extensions[users] = bases[0] if len(bases) == 1 else type("Extension", bases, {})
    return _extensions[users]
