"""Encoder graphs without a device: a replay runs the model's own forward on the buffers as a graph would hold them.

What a real graph would compute in padding is NaN here, so that any use of it shows.
"""

from __future__ import annotations

from typing import Any

import torch

ROWS = ("pixel_values", "pos_embeds", "rotary_pos_emb_cos", "rotary_pos_emb_sin", "rotary_pos_emb")


class StubGraph:
    """Stands for `BudgetGraphMetadata` and for its graph."""

    def __init__(self, model: Any, budget: int, values: dict[str, Any]) -> None:
        self.model, self.token_budget, self.input_buffers = model, budget, values
        self.graph, self.axis_keys, self.longest = self, (), int(values["max_seqlen"])
        self.output_buffer = torch.empty(0)

    def replay(self) -> None:
        borders = self.input_buffers["cu_seqlens"]
        last = int(borders.max())
        used = int((borders < last).sum()) + 1
        longest = int((borders[1:] - borders[:-1]).max())
        assert longest <= self.longest, "attention was captured for shorter sequences"
        values = {key: value[:last] if key in ROWS else value for key, value in self.input_buffers.items()}
        rows = self.model.encoder_cudagraph_forward({**values, "cu_seqlens": borders[:used].clone()})
        captured = len(self.input_buffers["pixel_values"]) * len(rows) // last
        self.output_buffer = torch.full((captured, *rows.shape[1:]), torch.nan, dtype=rows.dtype)
        self.output_buffer[: len(rows)] = rows


def install(llm_engine: Any) -> Any:
    """Give the engine's worker a graph manager, "captured" with stub graphs; returns the manager."""
    return llm_engine.collective_rpc(_install)[0]


def remove(llm_engine: Any) -> None:
    """Let the engine encode without graphs again."""
    llm_engine.collective_rpc(_remove)


def forget(llm_engine: Any) -> None:
    """Empty the caches, so that the same clips are encoded again."""
    llm_engine.reset_prefix_cache()
    llm_engine.reset_mm_cache()
    llm_engine.reset_encoder_cache()


def capture(manager: Any) -> None:
    """What `EncoderCudaGraphManager.capture` does, with stub graphs."""
    manager.graph_pool = 1
    for budget in manager.token_budgets:
        values = manager.model.prepare_encoder_cudagraph_capture_inputs(
            budget, manager.max_batch_size, manager.max_frames_per_batch, torch.device("cpu"), manager.dtype
        ).values
        graph = StubGraph(manager.model, budget, {k: v for k, v in values.items() if v is not None})
        manager._get_graph_set()[budget] = graph


def _install(worker: Any) -> Any:
    from vllm.v1.worker.encoder_cudagraph import EncoderCudaGraphManager

    runner = worker.model_runner
    manager = EncoderCudaGraphManager(
        vllm_config=runner.vllm_config, device=torch.device("cpu"), dtype=runner.dtype, model=runner.get_model()
    )
    with torch.inference_mode():
        capture(manager)
    runner.encoder_cudagraph_manager = manager
    return manager


def _remove(worker: Any) -> None:
    worker.model_runner.encoder_cudagraph_manager = None
