"""Where the time of a replay goes: the arm `why` of `encoder.py`.

For some of the captured budgets, filled exactly with frames of 224 x 224: the encoder without a graph, the whole
replay, its parts, and the same graph captured as upstream does it: with the whole budget as attention's longest
sequence, and with upstream's grid.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from vidpipe.engine.vllm_plugin import graph_run
from vidpipe.plan.graph_packing import EncoderItem, Graph

FRAME_PATCHES = 196
ITEMS, FRAMES = 8, 128
"""Upstream's limits when they are set by hand for such clips."""
ROUNDS = 7


def parts_of_replays(manager: Any, budgets: list[int]) -> list[dict[str, Any]]:
    """Milliseconds by part, a budget each."""
    import torch

    with torch.inference_mode():
        return [_parts(manager, budget) for budget in budgets]


def _parts(manager: Any, budget: int) -> dict[str, Any]:
    model, run = manager.model, graph_run.required()
    graph = run.graph_of(budget)
    tokens = FRAME_PATCHES // model.graph_merge() ** 2
    inputs = model.sample_inputs(EncoderItem(budget, max(1, min(graph.sequences, budget // tokens)), FRAME_PATCHES))
    captured = manager.budget_graphs["default"][budget]

    def prepare() -> Any:
        return model.prepare_encoder_cudagraph_replay_buffers(inputs, ITEMS, FRAMES)

    values = prepare().values

    def copy() -> None:
        for key, buffer in captured.input_buffers.items():
            if values.get(key) is not None:
                manager.config.padding_logics[key](buffer, values[key])

    found: dict[str, Any] = {
        "budget": budget,
        "tokens": sum(item.tokens for item in model.encoder_items(inputs)),
        "sequences captured": graph.sequences,
        "longest captured": graph.patches_per_sequence,
        "without a graph": _ms(lambda: model.encoder_eager_forward(inputs)),
        "replay, whole": _ms(lambda: manager._run_budget_graph(inputs, budget)),
        "prepare": _ms(prepare),
        "copy": _ms(copy),
        "graph": _ms(captured.graph.replay),
    }
    longest = budget * model.graph_merge() ** 2
    found["graph, whole budget as longest sequence"] = _captured_anew(
        manager, replace(graph, patches_per_sequence=longest)
    )
    found["graph, upstream's grid"], found["rows of that"] = _captured_by_upstream(manager, budget)
    return found


def _captured_anew(manager: Any, graph: Graph) -> float:
    """Milliseconds of the graph with other limits; the borders are those of its capture."""
    run = graph_run.required()
    before = run.graphs
    others = tuple(graph if one.tokens == graph.tokens else one for one in before.graphs)
    run.graphs = replace(before, graphs=others)
    try:
        values = manager.model.prepare_encoder_cudagraph_capture_inputs(
            graph.tokens, ITEMS, FRAMES, manager.device, manager.dtype
        ).values
    finally:
        run.graphs = before
    return _replay_ms(manager, {**values, "cu_seqlens": _frames(values["cu_seqlens"], graph.tokens * 4)})


def _captured_by_upstream(manager: Any, budget: int) -> tuple[float, int]:
    from vllm.model_executor.models.qwen3_vl import Qwen3VLForConditionalGeneration

    values = Qwen3VLForConditionalGeneration.prepare_encoder_cudagraph_capture_inputs(
        manager.model, budget, ITEMS, FRAMES, manager.device, manager.dtype
    ).values
    rows = values["pixel_values"].shape[0] // 4
    return _replay_ms(manager, {**values, "cu_seqlens": _frames(values["cu_seqlens"], budget * 4)}), rows


def _frames(borders: Any, patches: int) -> Any:
    """Borders of frames of `FRAME_PATCHES`, as many as fit."""
    import torch

    steps = torch.arange(len(borders), device=borders.device, dtype=torch.int64) * FRAME_PATCHES
    return steps.clamp(max=patches).to(borders.dtype)


def _replay_ms(manager: Any, values: dict[str, Any]) -> float:
    import torch

    forward = manager.model.encoder_cudagraph_forward
    for _ in range(2):
        forward(dict(values))
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        forward(dict(values))
    return _ms(graph.replay)


def _ms(work: Callable[[], Any]) -> float:
    import torch

    work()
    taken = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        started = time.perf_counter()
        work()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - started)
    return round(1000 * statistics.median(taken), 3)
