"""What the graph methods of all model classes share: items, limits, and the config under which buffers are filled."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from vllm.v1.worker.encoder_cudagraph_defs import EncoderItemSpec

from vidpipe.engine.vllm_plugin import graph_run
from vidpipe.engine.vllm_plugin.graph_buffers import capture_borders, capture_grid, padding_logics
from vidpipe.plan.graph_packing import EncoderItem, Graph

CAPTURABLE = ("FLASH_ATTN", "TRITON_ATTN", "ROCM_AITER_FA")
"""Attention backends whose kernels read borders on the device; others read them on the host, or in another form."""
MODALITIES = ["image", "video"]


class GraphedEncoder:
    """Stands before a class with vLLM's `SupportsEncoderCudaGraph`; a descendant adds what is its model's own."""

    @abstractmethod
    def encoder_items(self: Any, mm_kwargs: dict[str, Any]) -> list[EncoderItem]:
        """The items of a batch, for `plan.graph_packing`."""

    @abstractmethod
    def graph_merge(self: Any) -> int:
        """Patches along each side that become one token."""

    @abstractmethod
    def sample_inputs(self: Any, item: EncoderItem) -> dict[str, Any]:
        """Keyword arguments of the encoder for a black video like `item`, to time it."""

    def get_encoder_cudagraph_config(self: Any) -> Any:
        """Upstream's config, for images and videos, with our way to fill buffers."""
        config = super().get_encoder_cudagraph_config()  # type: ignore[misc]
        return graphed_config(config, self.graph_attention_backend())

    def get_max_frames_per_video(self: Any) -> int:
        """Upstream derives it from the largest image; here the run's plan says."""
        return max((graph.sequences for graph in graph_run.required().graphs.graphs), default=1)

    def get_encoder_cudagraph_item_specs(self: Any, mm_kwargs: dict[str, Any]) -> list[EncoderItemSpec]:
        """Sizes of a batch's items."""
        merge = self.graph_merge()
        return [EncoderItemSpec(item.tokens * merge**2, item.tokens) for item in self.encoder_items(mm_kwargs)]


def graphed_config(config: Any, attention_backend: Any) -> Any:
    """`config` for images and videos; for nothing where the encoder's attention cannot be captured."""
    import torch

    capturable = getattr(attention_backend, "name", "") in CAPTURABLE or not torch.cuda.is_available()
    keys = [key for key in config.buffer_keys if key != "max_seqlen"]
    return replace(config, modalities=MODALITIES if capturable else [], padding_logics=padding_logics(keys))


def capture_plan(token_budget: int, merge: int, device: Any) -> tuple[Graph, list[list[int]], Any]:
    """The graph to capture, a grid with exactly its rows, and borders as long as it may need."""
    graph = graph_run.required().graph_of(token_budget)
    return graph, capture_grid(token_budget, merge), capture_borders(graph, merge, device)


def slices_of(pixels: Any, patches: Sequence[int], indices: Sequence[int]) -> Any:
    """Rows of the chosen items; the tensor itself where all are chosen, in order.

    Args:
        pixels: [patches of all items, ...].
        patches: Rows of each item.
        indices: Chosen items, ascending.
    """
    import torch

    if list(indices) == list(range(len(patches))):
        return pixels
    starts = [0]
    for count in patches:
        starts.append(starts[-1] + count)
    parts = [pixels[starts[i] : starts[i + 1]] for i in indices]
    return torch.cat(parts) if parts else pixels[:0]


def sample_grid(item: EncoderItem, merge: int) -> list[int]:
    """A grid (time, height, width in patches) of no more than `item`, about as square as its sequences allow."""
    tokens = max(1, min(item.patches_per_sequence // merge**2, item.tokens))
    height = math.isqrt(tokens)
    width = tokens // height
    steps = max(1, min(item.sequences, item.tokens // (height * width)))
    return [steps, merge * height, merge * width]
