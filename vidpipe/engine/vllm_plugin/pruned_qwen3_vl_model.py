"""Qwen3-VL and its MoE form with pruning made right. Importing this imports vLLM's model classes.

Every override falls back to upstream's method where pruning is off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from vllm.model_executor.models.qwen3_vl import Qwen3VLForConditionalGeneration
from vllm.model_executor.models.qwen3_vl_moe import Qwen3VLMoeForConditionalGeneration
from vllm.utils.gpu_sync_debug import gpu_sync_allowed

from vidpipe.engine.vllm_plugin.encoder_batches import batches
from vidpipe.engine.vllm_plugin.host_copies import to_device, to_host
from vidpipe.engine.vllm_plugin.pruned_positions import Item, initial_positions, write_pieces
from vidpipe.engine.vllm_plugin.pruned_rows import assembled, pruned_rows
from vidpipe.engine.vllm_plugin.row_channels import CHANNELS, piece_of
from vidpipe.engine.vllm_plugin.video_layout import VideoLayout, time_texts, video_layout


class PrunedPositions:
    """Overrides for a class that is or descends from `Qwen3VLForConditionalGeneration`; stands before it."""

    def __init__(self: Any, *, vllm_config: Any, prefix: str = "") -> None:
        """Upstream's; and how many tokens the encoder takes at once."""
        super().__init__(vllm_config=vllm_config, prefix=prefix)  # type: ignore[call-arg]
        self.encoder_batch_tokens = vllm_config.scheduler_config.max_num_batched_tokens

    def _process_video_input(self: Any, video_input: Any) -> tuple[Any, ...]:
        """Embeddings of each video, before pruning; encoded in batches that memory was measured for."""
        if not self.is_multimodal_pruning_enabled or video_input["type"] != "pixel_values_videos":
            encoded: tuple[Any, ...] = super()._process_video_input(video_input)  # type: ignore[misc]
            return encoded
        grids, pixels = video_input["video_grid_thw"], video_input["pixel_values_videos"]
        patches = grids.prod(-1).tolist()
        merged = self.visual.spatial_merge_size**2
        encoded = ()
        for batch in batches([size // merged for size in patches], self.encoder_batch_tokens):
            begin = sum(patches[: batch.start])
            part = {
                "type": "pixel_values_videos",
                "pixel_values_videos": pixels[begin : begin + sum(patches[batch.start : batch.stop])],
                "video_grid_thw": grids[batch.start : batch.stop],
            }
            encoded += super()._process_video_input(part)  # type: ignore[misc]
        return encoded

    def get_mrope_input_positions(self: Any, input_tokens: list[int], mm_features: list[Any]) -> tuple[Any, int]:
        """Positions [3, tokens] int64 and their delta; both runners ask when a request enters.

        Upstream takes a pruned video for as many frames as fit into its kept tokens, so what
        follows it stands wrong; with prefix caching nothing puts that right.
        """
        if not self.is_multimodal_pruning_enabled:
            upstream: tuple[Any, int] = super().get_mrope_input_positions(input_tokens, mm_features)  # type: ignore[misc]
            return upstream
        merge = self.config.vision_config.spatial_merge_size
        items = sorted((_item(feature, merge) for feature in mm_features), key=lambda item: item.start)
        ids = np.asarray(input_tokens, dtype=np.int64)
        positions = initial_positions(ids, items, self.config.video_token_id)
        return torch.from_numpy(positions), _delta(positions)

    def _postprocess_video_embeds_evs(self: Any, video_embeds_split: Sequence[Any], video_input: Any) -> Any:
        """Rows of each video after pruning, with channels; every pruned video passes here, with graphs and without."""
        layouts = [
            self._layout(times_s, grid)
            for times_s, grid in zip(video_input.timestamps, video_input["video_grid_thw"].tolist(), strict=True)
        ]
        method = self.video_pruning_method or "evs"
        embed = self.get_language_model().embed_input_ids
        return pruned_rows(video_embeds_split, layouts, method, self.video_pruning_rate, embed)

    def _create_final_video_embeddings(self: Any, **arguments: Any) -> Any:
        """Rows of one video of which the tokens are chosen, under upstream's name; waits for the device."""
        rows, mask = arguments["video_embeddings"], arguments["retention_mask"]
        layout = self._layout(arguments["timestamps"], arguments["video_grid_thw"])
        embed = self.get_language_model().embed_input_ids
        return assembled(rows, mask.nonzero().flatten(), [len(rows)], [layout], embed)[0]

    def _layout(self: Any, times_s: Any, grid_thw: Sequence[int]) -> VideoLayout:
        t, h, w = grid_thw
        merge, config = self.visual.spatial_merge_size, self.config
        texts = time_texts(self._tokenizer, times_s)
        return video_layout(
            texts, (t, h // merge, w // merge), config.vision_start_token_id, config.vision_end_token_id
        )

    def _postprocess_image_embeds_evs(self: Any, image_embeds_split: tuple[Any, ...], image_input: Any) -> Any:
        """Images of a run with pruning: as wide as videos. Their initial positions are right already."""
        if not self.is_multimodal_pruning_enabled:
            return image_embeds_split
        return tuple(torch.cat([rows, rows.new_zeros(len(rows), CHANNELS)], dim=1) for rows in image_embeds_split)

    def recompute_mrope_positions(
        self: Any,
        input_ids: list[int] | Any,
        multimodal_embeddings: Sequence[Any],
        mrope_positions: Any,
        num_computed_tokens: int,
    ) -> tuple[Sequence[Any], Any, int]:
        """Embeddings without channels, positions [3, tokens] with their rows written, and the delta.

        Runs between the runner's gathering of a chunk's embeddings and the merge. Upstream
        guesses from the prompt's vision-start tokens which item the rows belong to, and how far
        it has come; here the rows say so.
        """
        if not multimodal_embeddings:
            return multimodal_embeddings, mrope_positions, _delta(mrope_positions)
        with gpu_sync_allowed():
            positions, ids, *channels = to_host(
                [
                    mrope_positions.to(torch.int64),
                    torch.as_tensor(input_ids),
                    *(rows[:, -CHANNELS:].to(torch.uint8) for rows in multimodal_embeddings),
                ]
            )
        found = [piece for piece in map(piece_of, channels) if piece is not None]
        write_pieces(positions, ids, found, self.config.video_token_id, num_computed_tokens)
        stripped = [rows[:, :-CHANNELS] for rows in multimodal_embeddings]
        (written,) = to_device([positions], mrope_positions.device)
        return stripped, written, _delta(positions)


def _item(feature: Any, merge: int) -> Item:
    place, is_video = feature.mm_position, feature.modality == "video"
    t, h, w = feature.data["video_grid_thw" if is_video else "image_grid_thw"].data.tolist()
    return Item(place.offset, place.length, (t, h // merge, w // merge), is_video)


def _delta(positions: Any) -> int:
    """What is added to a count of tokens to get the position of the next generated one."""
    return int(positions.max()) + 1 - int(positions.shape[1])


class PrunedQwen3VL(PrunedPositions, Qwen3VLForConditionalGeneration):  # type: ignore[misc]
    """Registered in place of `Qwen3VLForConditionalGeneration`."""


class PrunedQwen3VLMoe(PrunedPositions, Qwen3VLMoeForConditionalGeneration):  # type: ignore[misc]
    """Registered in place of `Qwen3VLMoeForConditionalGeneration`."""


REPLACED = {
    "Qwen3VLForConditionalGeneration": PrunedQwen3VL,
    "Qwen3VLMoeForConditionalGeneration": PrunedQwen3VLMoe,
}
"""Architecture -> the class that loads its checkpoints."""
