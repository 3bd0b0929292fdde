"""Encoder graphs for ERNIE-4.5-VL, videos too, and its resampler run once.

Only the ViT is captured. The resampler, which joins pairs of frames and indexes on the host,
runs behind it for graphs and for items without one alike. Upstream lets the latter through it
twice: its `encoder_eager_forward` resamples, and the manager then post-processes.

Budgets count the ViT's rows after spatial merging, twice what the prompt gets for a video.
"""

from __future__ import annotations

from typing import Any

import torch
from vllm.model_executor.models.ernie45_vl import Ernie4_5_VLMoeForConditionalGeneration
from vllm.v1.worker.encoder_cudagraph_defs import EncoderCudaGraphCaptureInputs, EncoderCudaGraphReplayBuffers

from vidpipe.engine.vllm_plugin.graphed_encoder import GraphedEncoder, capture_plan, sample_grid, slices_of
from vidpipe.plan.graph_packing import EncoderItem


class GraphedErnie45VL(GraphedEncoder, Ernie4_5_VLMoeForConditionalGeneration):  # type: ignore[misc]
    """Registered in place of `Ernie4_5_VLMoeForConditionalGeneration`."""

    def graph_merge(self: Any) -> int:
        """See `GraphedEncoder`."""
        merge: int = self.vision_model.spatial_merge_size
        return merge

    def graph_attention_backend(self: Any) -> Any:
        """Of the vision encoder."""
        return self.vision_model.attn_backend

    def get_input_modality(self, mm_kwargs: dict[str, Any]) -> str:
        """`image` or `video`."""
        return "video" if "pixel_values_videos" in mm_kwargs else "image"

    def encoder_items(self: Any, mm_kwargs: dict[str, Any]) -> list[EncoderItem]:
        """See `GraphedEncoder`. Attention stays within a frame."""
        merge = self.graph_merge()
        return [EncoderItem(t * h * w // merge**2, t, h * w) for t, h, w in self._graph_grid(mm_kwargs).tolist()]

    def sample_inputs(self: Any, item: EncoderItem) -> dict[str, Any]:
        """See `GraphedEncoder`."""
        grid, embed = sample_grid(item, self.graph_merge()), self.vision_model.patch_embed
        shape = (grid[0] * grid[1] * grid[2], embed.in_channels * embed.patch_size**2)
        pixels = torch.zeros(shape, device=self.vision_model.device, dtype=self.vision_model.dtype)
        return {"pixel_values_videos": pixels, "video_grid_thw": torch.tensor([grid])}

    def select_encoder_cudagraph_items(self: Any, mm_kwargs: dict[str, Any], indices: list[int]) -> dict[str, Any]:
        """The chosen items' arguments."""
        grid = self._graph_grid(mm_kwargs)
        rows = slices_of(self._graph_pixels(mm_kwargs), grid.prod(dim=1).tolist(), indices)
        if self.get_input_modality(mm_kwargs) == "image":
            return {"pixel_values": rows, "image_grid_thw": grid[indices]}
        return {"pixel_values_videos": rows, "video_grid_thw": grid[indices]}

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
        """Buffers of exactly the budget's rows; the longest sequence is the plan's."""
        graph, grid, borders = capture_plan(token_budget, self.graph_merge(), device)
        values = self.vision_model.prepare_encoder_metadata(
            grid, max_seqlen_override=graph.patches_per_sequence, device=device
        )
        embed = self.vision_model.patch_embed
        pixels = torch.zeros(
            token_budget * self.graph_merge() ** 2,
            embed.in_channels * embed.patch_size**2,
            device=device,
            dtype=dtype,
        )
        return EncoderCudaGraphCaptureInputs({**values, "cu_seqlens": borders, "pixel_values": pixels})

    def prepare_encoder_cudagraph_replay_buffers(
        self: Any, mm_kwargs: dict[str, Any], max_batch_size: int, max_frames_per_batch: int, path: str = "default"
    ) -> EncoderCudaGraphReplayBuffers:
        """Values for one replay, without padding: `graph_buffers` fills what is left."""
        values = self.vision_model.prepare_encoder_metadata(self._graph_grid(mm_kwargs))
        pixels = self._graph_pixels(mm_kwargs).type(self.vision_model.dtype)
        return EncoderCudaGraphReplayBuffers({**values, "max_seqlen": None, "pixel_values": pixels})

    def encoder_eager_forward(self: Any, mm_kwargs: dict[str, Any], path: str = "default") -> torch.Tensor:
        """The ViT's own rows, as a graph gives them: `postprocess_encoder_output` resamples both."""
        pixels = self._graph_pixels(mm_kwargs).type(self.vision_model.dtype)
        rows: torch.Tensor = self._vision_forward(pixel_values=pixels, grid_thw=self._graph_grid(mm_kwargs))
        return rows

    def postprocess_encoder_output(
        self: Any,
        outputs: dict[str, torch.Tensor],
        indices: list[int],
        per_item_out_tokens: list[int],
        dest: Any,
        clone: bool = False,
        batch_mm_kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Resample the batch, and scatter what its items' tokens are then: a video's are half of what was counted."""
        assert batch_mm_kwargs is not None
        grid = self._graph_grid(batch_mm_kwargs)
        patches = grid.prod(dim=1)
        rows = self.resampler_model(outputs["default"][: int(patches.sum())], grid)
        is_video = self.get_input_modality(batch_mm_kwargs) == "video"
        per_token = self.graph_merge() ** 2 * (self.config.temporal_conv_size if is_video else 1)
        for index, part in zip(indices, rows.split((patches // per_token).tolist()), strict=True):
            dest[index] = part.clone() if clone else part

    def _graph_grid(self: Any, mm_kwargs: dict[str, Any]) -> torch.Tensor:
        """[items, 3] on the host."""
        grid: torch.Tensor = mm_kwargs[f"{self.get_input_modality(mm_kwargs)}_grid_thw"]
        return grid.reshape(-1, 3)

    def _graph_pixels(self: Any, mm_kwargs: dict[str, Any]) -> torch.Tensor:
        pixels: torch.Tensor = mm_kwargs[
            "pixel_values_videos" if self.get_input_modality(mm_kwargs) == "video" else "pixel_values"
        ]
        return pixels


REPLACED = {"Ernie4_5_VLMoeForConditionalGeneration": GraphedErnie45VL}
"""Architecture -> the class that loads its checkpoints."""
