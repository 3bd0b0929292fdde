"""Encoder graphs in a vLLM engine: its arguments, the measurement at its start, its counters at the end."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from vidpipe.engine.interface import WantedGraphs
from vidpipe.engine.vllm_plugin import plugin
from vidpipe.engine.vllm_plugin.gate import judge
from vidpipe.engine.vllm_plugin.graph_run import NAME
from vidpipe.engine.vllm_plugin.repairs import get_repair
from vidpipe.engine.vllm_plugin.settings import UnknownVersion
from vidpipe.errors import CapabilityError

_log = logging.getLogger("vllm.vidpipe")
OURS = ("cudagraph_mm_encoder", "encoder_cudagraph_")
"""Beginnings of the keys of vLLM's `compilation_config` that the recipe says with `engine.encoder_graphs`."""


def refuse_own_keys(args: Mapping[str, Any]) -> None:
    """Refuse graphs that the recipe sets past `engine.encoder_graphs`: their budgets would not fit the plan.

    Raises:
        CapabilityError: naming the keys.
    """
    config = args.get("compilation_config")
    keys = sorted(key for key in config if key.startswith(OURS)) if isinstance(config, Mapping) else []
    if keys:
        raise CapabilityError(
            f"engine.args.compilation_config.{', '.join(keys)} would contradict the recipe. Say it with "
            "engine.encoder_graphs, which finds the budgets."
        )


def unless_unknown(wanted: WantedGraphs | None, unknown_version: UnknownVersion) -> WantedGraphs | None:
    """`wanted`, or None where `auto` meets a vLLM that its graphs were not written for; `on` is refused later, aloud.

    Call it after the environment is prepared: it imports vLLM.
    """
    if wanted is None or wanted.always:
        return wanted
    verdict = judge(NAME, plugin.examine(get_repair(NAME)), unknown_version)
    if verdict.action == "apply":
        return wanted
    _log.warning("vidpipe: no encoder graphs: %s", verdict.reason)
    return None


def arguments(wanted: WantedGraphs | None, users: Any) -> dict[str, Any]:
    """Arguments for vLLM's `EngineArgs`.

    Args:
        wanted: The graphs; None without any.
        users: `compilation_config` as the recipe has it: None, a level, or a mapping.
    """
    if wanted is None:
        return {}
    graphs = wanted.graphs
    given = dict(users) if isinstance(users, Mapping) else {} if users is None else {"mode": users}
    return {
        "compilation_config": {
            **given,
            "cudagraph_mm_encoder": True,
            "encoder_cudagraph_token_budgets": [graph.tokens for graph in graphs.graphs],
            "encoder_cudagraph_max_vision_items_per_batch": graphs.max_items,
            "encoder_cudagraph_max_frames_per_batch": graphs.graphs[-1].sequences,
        }
    }


def settle(llm_engine: Any, wanted: WantedGraphs | None) -> dict[str, Any] | None:
    """Before the first row: time the graphs where that decides, and set all counters to 0.

    Every worker divides calls by the first one's timings: they must do the same, for they compute together.

    Returns:
        See `vllm_plugin.graph_timing.measure`; None where nothing was measured.
    """
    timings = None
    if wanted is not None and not wanted.always:
        timings = llm_engine.collective_rpc("vidpipe_time_encoder")[0]
        llm_engine.collective_rpc("vidpipe_encoder_costs", args=(timings,))
    llm_engine.collective_rpc("vidpipe_encoder_reset")
    return timings


def report(llm_engine: Any, wanted: WantedGraphs | None, pruning: bool, timings: Any) -> dict[str, Any]:
    """What the encoder did; a part that nothing counted is None.

    Workers of one engine encode the same (tensor parallel) and are counted once.
    """
    counted: dict[str, Any] = llm_engine.collective_rpc("vidpipe_encoder")[0]
    pruned = {key: counted.pop(key) for key in ("unpruned_tokens", "kept_tokens")}
    if wanted is None:
        return {"graphs": None, "pruning": pruned if pruning else None}
    captured, used = counted["captured_tokens"], counted["used_tokens"]
    graphs = {
        **wanted.graphs.as_json(),
        **counted,
        "padded_share": 1 - used / captured if captured else None,
        "timings": timings,
    }
    return {"graphs": graphs, "pruning": pruned if pruning else None}
