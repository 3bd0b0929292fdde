"""vLLM's manager of encoder graphs, made to divide calls by cost and to replay only what a graph was captured for.

The methods are replaced on the class: one model runner imports it when it is needed, the other
at the top of a module, and both get the same class.
"""

from __future__ import annotations

import time
from functools import wraps
from typing import Any

from vidpipe.engine.vllm_plugin import graph_run
from vidpipe.engine.vllm_plugin.encoder_counters import counters, timed
from vidpipe.plan.graph_packing import pack

_REPLACED = "_vidpipe_upstream"


def patch(manager: Any) -> None:
    """Replace methods of `EncoderCudaGraphManager`. Idempotent.

    Args:
        manager: The class.
    """
    for name, make in (("_execute_local", _dividing), ("_run_budget_graph", _guarded), ("capture", _measured)):
        upstream = getattr(manager, name)
        if not hasattr(upstream, _REPLACED):
            replacement = make(upstream)
            setattr(replacement, _REPLACED, upstream)
            setattr(manager, name, replacement)


def is_patched(manager: Any) -> bool:
    """Whether the class has our methods."""
    return all(hasattr(getattr(manager, name), _REPLACED) for name in ("_execute_local", "_run_budget_graph"))


def _run_of(manager: Any) -> graph_run.GraphRun | None:
    """The run whose graphs the manager has; None for a model class that is not ours."""
    return graph_run.current() if hasattr(manager.model, "encoder_items") else None


def _dividing(upstream: Any) -> Any:
    @wraps(upstream)
    def execute_local(self: Any, mm_kwargs: dict[str, Any]) -> list[Any]:
        """Rows of each item, in the call's order; the call divided as `plan.graph_packing.pack` says."""
        run = _run_of(self)
        if run is None:
            outputs: list[Any] = upstream(self, mm_kwargs)
            return outputs
        counters.calls += 1
        with timed():
            return _divided(self, run, mm_kwargs)

    return execute_local


def _divided(manager: Any, run: graph_run.GraphRun, mm_kwargs: dict[str, Any]) -> list[Any]:
    items = manager.model.encoder_items(mm_kwargs)
    tokens = [item.tokens for item in items]
    found: dict[int, Any] = {}
    for part in pack(items, run.graphs, run.costs):
        indices = sorted(part.items)
        chosen, axis_keys = manager._select_items(mm_kwargs, indices)
        if part.graph is None:
            output = manager.model.encoder_eager_forward(chosen)
            manager.graph_misses += len(indices)
            counters.misses += len(indices)
            counters.missed_tokens += part.tokens
        else:
            output = manager._run_budget_graph(chosen, run.graphs.graphs[part.graph].tokens, axis_keys=axis_keys)
        manager.model.postprocess_encoder_output(
            {"default": output}, indices, tokens, found, clone=True, batch_mm_kwargs=chosen
        )
    return [found[i] for i in range(len(items))]


def _guarded(upstream: Any) -> Any:
    @wraps(upstream)
    def run_budget_graph(
        self: Any, mm_kwargs: dict[str, Any], token_budget: int, path: str = "default", axis_keys: tuple[Any, ...] = ()
    ) -> Any:
        """Upstream's replay, or a run without a graph where the captured one would overrun or compute wrong rows."""
        run = _run_of(self)
        if run is None:
            return upstream(self, mm_kwargs, token_budget, path, axis_keys)
        items = self.model.encoder_items(mm_kwargs)
        count, tokens = len(items), sum(item.tokens for item in items)
        if not graph_run.takes(run.graph_of(token_budget), items, run.graphs.max_items):
            self.graph_misses += count
            counters.misses += count
            counters.overruns += count
            counters.missed_tokens += tokens
            return self.model.encoder_eager_forward(mm_kwargs, path=path)
        output = upstream(self, mm_kwargs, token_budget, path, axis_keys)
        counters.hits += count
        counters.captured_tokens += token_budget
        counters.used_tokens += tokens
        return output

    return run_budget_graph


def _measured(upstream: Any) -> Any:
    @wraps(upstream)
    def capture(self: Any, graph_pool: Any) -> None:
        """Upstream's capture, with its time and the device memory that it took."""
        from torch import accelerator

        accelerator.synchronize()
        accelerator.empty_cache()
        free, started = accelerator.get_memory_info()[0], time.perf_counter()
        upstream(self, graph_pool)
        accelerator.synchronize()
        if _run_of(self) is not None:
            counters.capture_s = time.perf_counter() - started
            counters.capture_bytes = free - accelerator.get_memory_info()[0]

    return capture
