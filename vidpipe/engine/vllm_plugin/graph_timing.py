"""A short measurement in a worker at the engine's start: every graph beside the same work without one.

Where a graph saves time depends on the encoder, the GPU and its host. So `auto` does not
trust the plan's guess: calls are divided by what was measured here.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from vidpipe.engine.vllm_plugin import graph_run
from vidpipe.plan.graph_packing import Costs, EncoderItem

ROUNDS = 3
"""Timed runs, after one that warms up; the median counts."""


def manager_of(worker: Any) -> Any:
    """The graph manager of a vLLM worker, whichever model runner it has; None without one."""
    runner = worker.model_runner
    if hasattr(runner, "model_state"):
        encoder_runner = getattr(runner.model_state, "encoder_runner", None)
        return getattr(encoder_runner, "cudagraph_manager", None)
    return getattr(runner, "encoder_cudagraph_manager", None)


def measure(worker: Any) -> dict[str, list[Any]]:
    """Seconds of replays and of runs without a graph.

    Returns:
        `replay`: for each graph its tokens and seconds; `eager`: tokens and seconds, ascending.
    """
    import torch

    manager, run = manager_of(worker), graph_run.required()
    replay, eager = [], []
    with torch.inference_mode():
        for graph in run.graphs.graphs:
            inputs = manager.model.sample_inputs(EncoderItem(graph.tokens, graph.sequences, graph.patches_per_sequence))
            replay.append((graph.tokens, _median_s(lambda: manager._run_budget_graph(inputs, graph.tokens))))  # noqa: B023 - called at once
            eager.append(_eager_point(manager.model, inputs))
        if run.graphs.graphs and run.graphs.graphs[-1].tokens < run.graphs.eager_tokens:
            largest, most = run.graphs.graphs[-1], run.graphs.eager_tokens
            inputs = manager.model.sample_inputs(EncoderItem(most, most, largest.patches_per_sequence))
            eager.append(_eager_point(manager.model, inputs))
    return {"replay": replay, "eager": eager}


def costs_of(replay: Sequence[Sequence[float]], eager: Sequence[Sequence[float]]) -> Costs:
    """What was measured, as the packer takes it. More tokens never count as less time."""
    points: list[tuple[int, float]] = []
    for tokens, seconds in sorted((int(tokens), seconds) for tokens, seconds in eager):
        highest = max([seconds, *(before for _, before in points)])
        if points and points[-1][0] == tokens:
            points[-1] = (tokens, highest)
        else:
            points.append((tokens, highest))
    return Costs(tuple(seconds for _, seconds in replay), tuple(points))


def _eager_point(model: Any, inputs: dict[str, Any]) -> tuple[int, float]:
    tokens = sum(item.tokens for item in model.encoder_items(inputs))
    return tokens, _median_s(lambda: model.encoder_eager_forward(inputs))


def _median_s(work: Callable[[], Any]) -> float:
    import torch

    def wait() -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    work()
    seconds = []
    for _ in range(ROUNDS):
        wait()
        started = time.perf_counter()
        work()
        wait()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)
