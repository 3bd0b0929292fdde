"""How the installed vLLM shows its faults with encoder graphs: its own functions on made-up arguments, no weights."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch


class _Replay:
    """Stands for a captured graph."""

    def replay(self) -> None:
        """Nothing to compute."""


class _ClipOfManySteps:
    """A model with one clip of 17 temporal patches and 17 tokens."""

    STEPS = 17

    def get_encoder_cudagraph_item_specs(self, mm_kwargs: dict[str, Any]) -> list[Any]:
        from vllm.v1.worker.encoder_cudagraph_defs import EncoderItemSpec

        return [EncoderItemSpec(4 * self.STEPS, self.STEPS)]

    def select_encoder_cudagraph_items(self, mm_kwargs: dict[str, Any], indices: list[int]) -> dict[str, Any]:
        return dict(mm_kwargs)

    def prepare_encoder_cudagraph_replay_buffers(self, *arguments: Any) -> Any:
        return SimpleNamespace(values={"cu_seqlens": torch.arange(self.STEPS + 1)})

    def encoder_eager_forward(self, mm_kwargs: dict[str, Any], path: str = "default") -> Any:
        return torch.zeros(self.STEPS, 1)

    def postprocess_encoder_output(
        self, outputs: dict[str, Any], indices: Any, tokens: Any, dest: Any, **_: Any
    ) -> None:
        dest[0] = outputs["default"]


def stub_manager(model: Any, budgets: list[int], max_frames: int, *, buffers: dict[str, Any]) -> Any:
    """A manager as after capture, without a device."""
    from vllm.v1.worker.encoder_cudagraph import BudgetGraphMetadata, EncoderCudaGraphManager

    manager = object.__new__(EncoderCudaGraphManager)
    manager.model, manager.token_budgets, manager.max_batch_size = model, budgets, 8
    manager.max_frames_per_batch, manager.use_dp, manager._capture_axes = max_frames, False, ()
    manager.config = SimpleNamespace(padding_logics={}, out_hidden_size=1, modalities=["video"])
    manager.path_token_budgets, manager.graph_hits, manager.graph_misses = {"default": budgets}, 0, 0
    manager.log_stats_interval, manager.graph_pool = 10**9, 1
    manager.budget_graphs = {
        "default": {
            budget: BudgetGraphMetadata(
                token_budget=budget,
                max_batch_size=8,
                max_frames_per_batch=max_frames,
                graph=_Replay(),
                input_buffers=buffers,
                output_buffer=torch.zeros(budget, 1),
            )
            for budget in budgets
        }
    }
    return manager


def packer_overrun() -> bool:
    """17 temporal patches against graphs captured for 8."""
    manager = stub_manager(_ClipOfManySteps(), [64], 8, buffers={"cu_seqlens": torch.zeros(9, dtype=torch.int64)})
    try:
        _upstream(type(manager), "_execute_local")(manager, {})
    except RuntimeError:
        return True
    return False


def padded_capture_grid() -> bool:
    """300 tokens for 8 items and 128 frames."""
    from vllm.model_executor.models.qwen3_vl import Qwen3VLForConditionalGeneration

    seen: list[Any] = []

    def metadata(grid: Any, **_: Any) -> dict[str, Any]:
        seen.append(sum(t * h * w for t, h, w in grid))
        return {}

    embed = SimpleNamespace(proj=SimpleNamespace(in_channels=3), patch_size=1, temporal_patch_size=1)
    norm = SimpleNamespace(input_dtype=None)
    visual = SimpleNamespace(
        spatial_merge_size=2, patch_embed=embed, input_norm=norm, prepare_encoder_metadata=metadata
    )
    Qwen3VLForConditionalGeneration.prepare_encoder_cudagraph_capture_inputs(
        SimpleNamespace(visual=visual), 300, 8, 128, torch.device("cpu"), torch.float32
    )
    return bool(seen[0] > 300 * 4)


def no_graphs_with_pruning() -> bool:
    """The modalities that Qwen3-VL lists when pruning is on."""
    from vllm.model_executor.models.qwen3_vl import Qwen3VLForConditionalGeneration

    model = SimpleNamespace(
        is_multimodal_pruning_enabled=True,
        visual=SimpleNamespace(out_hidden_size=1),
        get_max_frames_per_video=lambda: 1,
    )
    config = Qwen3VLForConditionalGeneration.get_encoder_cudagraph_config(model)
    return "video" not in config.modalities


def no_graphs_for_llava_onevision2() -> bool:
    """Whether its class has the protocol."""
    from vllm.model_executor.models.llava_onevision2 import LlavaOnevision2ForConditionalGeneration

    return not getattr(LlavaOnevision2ForConditionalGeneration, "supports_encoder_cudagraph", False)


def ernie_resampled_twice() -> bool:
    """An item that runs without a graph, through the two calls that the manager makes."""
    from vllm.model_executor.models.ernie45_vl import Ernie4_5_VLMoeForConditionalGeneration

    calls: list[int] = []

    def resample(rows: Any, grid: Any) -> Any:
        calls.append(len(rows))
        return rows[::4]

    model = SimpleNamespace(vision_model=_Tower(), resampler_model=resample)
    kwargs = {"pixel_values": torch.zeros(64, 1), "image_grid_thw": torch.tensor([[1, 8, 8]])}
    upstream = Ernie4_5_VLMoeForConditionalGeneration
    rows = upstream.encoder_eager_forward(model, kwargs)
    upstream.postprocess_encoder_output(model, {"default": rows}, [0], [16], {}, batch_mm_kwargs=kwargs)
    return len(calls) > 1


class _Tower:
    dtype, device = torch.float32, torch.device("cpu")

    def __call__(self, pixels: Any, grid: Any) -> Any:
        return pixels


def _upstream(owner: Any, name: str) -> Any:
    """A method as vLLM has it, whether or not we have replaced it."""
    method = getattr(owner, name)
    return getattr(method, "_vidpipe_upstream", method)
