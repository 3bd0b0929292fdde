"""Encoder graphs for LLaVA-OneVision-2, which upstream does not give any: images, frames and codec canvases.

The tower is split: positions become rotary frequencies outside, an input of the graph like the
pixels, so that frames (time 0) and codec canvases (time = source frame) share one graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from vllm.model_executor.layers.attention.mm_encoder_attention import MMEncoderAttention
from vllm.model_executor.models.interfaces import SupportsEncoderCudaGraph
from vllm.model_executor.models.llava_onevision2 import LlavaOnevision2ForConditionalGeneration
from vllm.v1.worker.encoder_cudagraph_defs import (
    EncoderCudaGraphCaptureInputs,
    EncoderCudaGraphConfig,
    EncoderCudaGraphReplayBuffers,
)

from vidpipe.engine.vllm_plugin.graphed_encoder import (
    MODALITIES,
    GraphedEncoder,
    capture_plan,
    graphed_config,
    sample_grid,
    slices_of,
)
from vidpipe.plan.graph_packing import EncoderItem


@dataclass(frozen=True)
class _Batch:
    """A batch of images, or of videos."""

    modality: str
    pixels: torch.Tensor
    """[patches, channels * patch * patch]."""
    positions: torch.Tensor
    """[patches, 3] int: time, height, width."""
    grids: list[list[int]]
    """Of each row: an image, a frame, or a clip's canvases; (time, height, width) in patches."""
    rows: list[int]
    """Rows of each item."""

    def items(self) -> list[list[list[int]]]:
        """The grids of each item."""
        starts = [sum(self.rows[:i]) for i in range(len(self.rows))]
        return [self.grids[start : start + count] for start, count in zip(starts, self.rows, strict=True)]


class GraphedLlavaOnevision2(
    GraphedEncoder,
    LlavaOnevision2ForConditionalGeneration,  # type: ignore[misc]
    SupportsEncoderCudaGraph,  # type: ignore[misc]
):
    """Registered in place of `LlavaOnevision2ForConditionalGeneration`."""

    def graph_merge(self: Any) -> int:
        """See `GraphedEncoder`."""
        merge: int = self.visual.spatial_merge_size
        return merge

    def get_input_modality(self, mm_kwargs: dict[str, Any]) -> str:
        """`image` or `video`."""
        return "video" if "pixel_values_videos" in mm_kwargs else "image"

    def encoder_items(self: Any, mm_kwargs: dict[str, Any]) -> list[EncoderItem]:
        """See `GraphedEncoder`. Attention stays within a window of frames, and within a row of the grid."""
        merge, window = self.graph_merge(), self.visual.frame_windows_size
        return [
            EncoderItem(
                sum(t * h * w for t, h, w in grids) // merge**2,
                sum(-(-t // window) for t, _, _ in grids),
                max((min(t, window) * h * w for t, h, w in grids), default=0),
            )
            for grids in self._graph_batch(mm_kwargs).items()
        ]

    def sample_inputs(self: Any, item: EncoderItem) -> dict[str, Any]:
        """See `GraphedEncoder`."""
        steps, height, width = sample_grid(item, self.graph_merge())
        patches, embed = steps * height * width, self.visual.embeddings
        device = self.visual.device
        return {
            "pixel_values_videos": torch.zeros(
                patches, embed.in_channels * embed.patch_size**2, device=device, dtype=self.visual.dtype
            ),
            "patch_positions_videos": torch.zeros(patches, 3, device=device, dtype=torch.int64),
            "video_grid_thw": torch.tensor([[1, height, width]] * steps),
            "video_num_frames": torch.tensor([steps]),
        }

    def get_encoder_cudagraph_config(self: Any) -> EncoderCudaGraphConfig:
        """Buffers of the tower behind its positions."""
        keys = ["pixel_values", "rotary_pos_emb", "cu_seqlens", "max_seqlen"]
        config = EncoderCudaGraphConfig(
            modalities=MODALITIES,
            buffer_keys=keys,
            out_hidden_size=self.config.text_config.hidden_size,
            max_frames_per_video=self.get_max_frames_per_video(),
        )
        found: EncoderCudaGraphConfig = graphed_config(config, self.visual.attn_backend)
        return found

    def get_encoder_cudagraph_budget_range(self: Any, vllm_config: Any) -> tuple[int, int]:
        """Of automatic budgets, as the other classes have it; a run of vidpipe always says its own."""
        return 64, min(vllm_config.scheduler_config.max_num_batched_tokens, vllm_config.model_config.max_model_len)

    def select_encoder_cudagraph_items(self: Any, mm_kwargs: dict[str, Any], indices: list[int]) -> dict[str, Any]:
        """The chosen items' arguments."""
        batch = self._graph_batch(mm_kwargs)
        per_item = batch.items()
        patches = [sum(t * h * w for t, h, w in grids) for grids in per_item]
        chosen = [per_item[i] for i in indices]
        suffix = "_videos" if batch.modality == "video" else ""
        found = {
            f"pixel_values{suffix}": slices_of(batch.pixels, patches, indices),
            f"patch_positions{suffix}": slices_of(batch.positions, patches, indices),
            f"{batch.modality}_grid_thw": torch.tensor([row for grids in chosen for row in grids]).reshape(-1, 3),
        }
        if batch.modality == "video":
            found["video_num_frames"] = torch.tensor([len(grids) for grids in chosen])
        return found

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
        graph, _, borders = capture_plan(token_budget, self.graph_merge(), device)
        patches, embed = token_budget * self.graph_merge() ** 2, self.visual.embeddings
        pixels = torch.zeros(patches, embed.in_channels * embed.patch_size**2, device=device, dtype=dtype)
        rotary = torch.zeros(patches, self.visual.rotary_pos_emb.half, device=device, dtype=torch.float32)
        longest = torch.tensor(graph.patches_per_sequence, dtype=torch.int32)
        return EncoderCudaGraphCaptureInputs(
            {"pixel_values": pixels, "rotary_pos_emb": rotary, "cu_seqlens": borders, "max_seqlen": longest}
        )

    def prepare_encoder_cudagraph_replay_buffers(
        self: Any, mm_kwargs: dict[str, Any], max_batch_size: int, max_frames_per_batch: int, path: str = "default"
    ) -> EncoderCudaGraphReplayBuffers:
        """Values for one replay, without padding: `graph_buffers` fills what is left."""
        batch = self._graph_batch(mm_kwargs)
        tower = self.visual
        borders = tower._build_window_cu_seqlens(torch.tensor(batch.grids))
        return EncoderCudaGraphReplayBuffers(
            {
                "pixel_values": batch.pixels,
                "rotary_pos_emb": tower.rotary_pos_emb.forward_from_positions(batch.positions.to(tower.device)),
                "cu_seqlens": MMEncoderAttention.maybe_recompute_cu_seqlens(
                    tower.attn_backend, borders, tower.embed_dim, tower.tp_size, tower.device
                ),
                "max_seqlen": None,
            }
        )

    def encoder_cudagraph_forward(self: Any, inputs: dict[str, torch.Tensor], path: str = "default") -> torch.Tensor:
        """`LlavaOnevision2VisionTower.forward` behind its positions and borders."""
        tower = self.visual
        hidden = tower.layernorm_pre(tower.embeddings(inputs["pixel_values"].to(tower.dtype)))
        for block in tower.encoder.layers:
            hidden = block(
                hidden,
                cu_seqlens=inputs["cu_seqlens"],
                rotary_pos_emb=inputs["rotary_pos_emb"],
                max_seqlen=inputs["max_seqlen"],
                sequence_lengths=None,
            )
        rows: torch.Tensor = tower.merger(hidden)
        return rows

    def encoder_eager_forward(self: Any, mm_kwargs: dict[str, Any], path: str = "default") -> torch.Tensor:
        """The tower as upstream runs it."""
        batch = self._graph_batch(mm_kwargs)
        rows: torch.Tensor = self.visual(
            batch.pixels, grid_thw=torch.tensor(batch.grids), patch_positions=batch.positions
        )
        return rows

    def _graph_batch(self: Any, mm_kwargs: dict[str, Any]) -> _Batch:
        """The runner's arguments, which come as tensors or as lists of them."""
        modality = self.get_input_modality(mm_kwargs)
        suffix = "_videos" if modality == "video" else ""
        flat = self._validate_and_reshape_mm_tensor
        grids = flat(mm_kwargs[f"{modality}_grid_thw"], "grid_thw").tolist()
        rows = [1] * len(grids) if modality == "image" else _counts(mm_kwargs["video_num_frames"])
        return _Batch(
            modality,
            flat(mm_kwargs[f"pixel_values{suffix}"], "pixel values"),
            flat(mm_kwargs[f"patch_positions{suffix}"], "patch positions"),
            grids,
            rows,
        )


def _counts(values: torch.Tensor | Sequence[torch.Tensor]) -> list[int]:
    tensors = [values] if isinstance(values, torch.Tensor) else values
    return [int(count) for tensor in tensors for count in tensor.flatten().tolist()]


REPLACED = {"LlavaOnevision2ForConditionalGeneration": GraphedLlavaOnevision2}
"""Architecture -> the class that loads its checkpoints."""
