"""Encoder graphs for Qwen3-VL, with and without pruning: the ViT is captured, pruning happens behind it.

Upstream turns graphs off for every modality when pruning is on, because its graph path would
skip what follows the encoder. The manager has a place for that: `postprocess_encoder_output`.
"""

from __future__ import annotations

from typing import Any

import torch
from vllm.model_executor.models.utils import scatter_output_slices
from vllm.v1.worker.encoder_cudagraph_defs import EncoderCudaGraphCaptureInputs, EncoderCudaGraphReplayBuffers

from vidpipe.engine.vllm_plugin.graphed_encoder import GraphedEncoder, capture_plan, sample_grid, slices_of
from vidpipe.engine.vllm_plugin.pruned_qwen3_vl_model import PrunedQwen3VL, PrunedQwen3VLMoe
from vidpipe.plan.graph_packing import EncoderItem


class _VideoInput:
    """What pruning reads of a batch of videos."""

    def __init__(self, grid_thw: list[Any], timestamps: Any) -> None:
        self._grid_thw = torch.as_tensor(grid_thw).reshape(-1, 3)
        self.timestamps = timestamps

    def __getitem__(self, key: str) -> torch.Tensor:
        return self._grid_thw


class GraphedQwen3(GraphedEncoder):
    """Overrides for Qwen3-VL's classes."""

    def graph_merge(self: Any) -> int:
        """See `GraphedEncoder`."""
        merge: int = self.visual.spatial_merge_size
        return merge

    def graph_attention_backend(self: Any) -> Any:
        """Of the vision encoder."""
        return self.visual.attn_backend

    def encoder_items(self: Any, mm_kwargs: dict[str, Any]) -> list[EncoderItem]:
        """See `GraphedEncoder`. Attention stays within a temporal patch."""
        merge = self.graph_merge()
        return [EncoderItem(t * h * w // merge**2, t, h * w) for t, h, w in self._get_grid_thw_by_modality(mm_kwargs)]

    def sample_inputs(self: Any, item: EncoderItem) -> dict[str, Any]:
        """See `GraphedEncoder`."""
        embed, grid = self.visual.patch_embed, sample_grid(item, self.graph_merge())
        shape = (grid[0] * grid[1] * grid[2], embed.proj.in_channels * embed.temporal_patch_size * embed.patch_size**2)
        dtype = self.visual.input_norm.input_dtype or self.visual.dtype
        return {
            "pixel_values_videos": torch.zeros(shape, device=self.visual.device, dtype=dtype),
            "video_grid_thw": [grid],
        }

    def get_encoder_cudagraph_config(self: Any) -> Any:
        """See `GraphedEncoder`; upstream's, as if pruning were off."""
        pruning = self.is_multimodal_pruning_enabled
        self.is_multimodal_pruning_enabled = False
        try:
            return super().get_encoder_cudagraph_config()
        finally:
            self.is_multimodal_pruning_enabled = pruning

    def select_encoder_cudagraph_items(self: Any, mm_kwargs: dict[str, Any], indices: list[int]) -> dict[str, Any]:
        """The chosen items' arguments; with time stamps, which pruning needs and upstream leaves out."""
        grids = self._get_grid_thw_by_modality(mm_kwargs)
        pixels = self._get_pixel_values_by_modality(mm_kwargs)
        rows = slices_of(pixels, [t * h * w for t, h, w in grids], indices)
        chosen = [list(grids[i]) for i in indices]
        if self.get_input_modality(mm_kwargs) == "image":
            return {"pixel_values": rows, "image_grid_thw": chosen}
        stamps = mm_kwargs.get("timestamps")
        timestamps = None if stamps is None else [stamps[i] for i in indices]
        return {"pixel_values_videos": rows, "video_grid_thw": chosen, "timestamps": timestamps}

    def prepare_encoder_cudagraph_capture_inputs(
        self: Any,
        token_budget: int,
        max_batch_size: int,
        max_frames_per_batch: int,
        device: torch.device,
        dtype: torch.dtype,
        path: str = "default",
        axis_keys: tuple[Any, ...] | None = None,
    ) -> EncoderCudaGraphCaptureInputs:
        """Buffers of exactly the budget's rows. The longest sequence is baked into attention: the plan's, not the
        whole budget as upstream has it."""
        graph, grid, borders = capture_plan(token_budget, self.graph_merge(), device)
        values = self.visual.prepare_encoder_metadata(
            grid, max_seqlen_override=graph.patches_per_sequence, device=device
        )
        embed = self.visual.patch_embed
        pixels = torch.zeros(
            token_budget * self.graph_merge() ** 2,
            embed.proj.in_channels * embed.temporal_patch_size * embed.patch_size**2,
            device=device,
            dtype=self.visual.input_norm.input_dtype or dtype,
        )
        return EncoderCudaGraphCaptureInputs({**values, "cu_seqlens": borders, "pixel_values": pixels})

    def prepare_encoder_cudagraph_replay_buffers(
        self: Any, mm_kwargs: dict[str, Any], max_batch_size: int, max_frames_per_batch: int, path: str = "default"
    ) -> EncoderCudaGraphReplayBuffers:
        """Values for one replay, without padding: `graph_buffers` fills what is left."""
        values = self.visual.prepare_encoder_metadata(self._get_grid_thw_by_modality(mm_kwargs))
        pixels = self._get_pixel_values_by_modality(mm_kwargs)
        return EncoderCudaGraphReplayBuffers({**values, "max_seqlen": None, "pixel_values": pixels})

    def postprocess_encoder_output(
        self: Any,
        outputs: dict[str, torch.Tensor],
        indices: list[int],
        per_item_out_tokens: list[int],
        dest: Any,
        clone: bool = False,
        batch_mm_kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Scatter the encoder's rows to their items; with pruning, prune them as the path without graphs does.

        Pruning copies the rows it keeps, so the graph's output is free for the next replay.
        """
        if not self.is_multimodal_pruning_enabled:
            scatter_output_slices(outputs["default"], indices, per_item_out_tokens, dest, clone)
            return
        assert batch_mm_kwargs is not None
        counts = [per_item_out_tokens[i] for i in indices]
        rows = outputs["default"][: sum(counts)].split(counts)
        grid = self._get_grid_thw_by_modality(batch_mm_kwargs)
        if self.get_input_modality(batch_mm_kwargs) == "image":
            finished = self._postprocess_image_embeds_evs(rows, _VideoInput(grid, None))
        else:
            finished = self._postprocess_video_embeds_evs(rows, _VideoInput(grid, batch_mm_kwargs["timestamps"]))
        for index, embeddings in zip(indices, finished, strict=True):
            dest[index] = embeddings


class GraphedQwen3VL(GraphedQwen3, PrunedQwen3VL):
    """Registered in place of `Qwen3VLForConditionalGeneration`."""


class GraphedQwen3VLMoe(GraphedQwen3, PrunedQwen3VLMoe):
    """Registered in place of `Qwen3VLMoeForConditionalGeneration`."""


REPLACED = {
    "Qwen3VLForConditionalGeneration": GraphedQwen3VL,
    "Qwen3VLMoeForConditionalGeneration": GraphedQwen3VLMoe,
}
"""Architecture -> the class that loads its checkpoints."""
