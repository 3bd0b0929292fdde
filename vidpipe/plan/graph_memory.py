"""What captured encoder graphs will take, from the shape that a checkpoint's config states. An estimate: the engine's
own count at capture is what a run records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vidpipe.plan.graph_budgets import Memory

VALUE_BYTES = 2
"""bfloat16 and float16."""
LIVE_HIDDEN, LIVE_WIDE = 10, 2
"""Values of one layer that are alive at once, in hidden and in intermediate widths. With these the 3.5 GiB measured
for four graphs of 2048 to 16384 tokens of Qwen3-VL-2B's shape (H200, vLLM 0.33) come out at 3.3."""


def encoder_memory(config: Mapping[str, Any], limit_bytes: int) -> Memory:
    """Memory of graphs for the vision encoder of a checkpoint.

    Args:
        config: The checkpoint's config.json.
        limit_bytes: What the graphs may take.
    """
    vision = config.get("vision_config", {})
    hidden = vision.get("hidden_size") or vision.get("embed_dim") or 1024
    wide = vision.get("intermediate_size") or int(hidden * vision.get("mlp_ratio", 4))
    patch, merge = vision.get("patch_size", 14), vision.get("spatial_merge_size", 2)
    pixels = vision.get("in_channels", 3) * vision.get("temporal_patch_size", 1) * patch**2
    text_hidden = config.get("text_config", config).get("hidden_size", hidden)
    out = vision.get("out_hidden_size", text_hidden) * (1 + len(vision.get("deepstack_visual_indexes", ())))
    head = hidden // max(1, vision.get("num_heads") or vision.get("num_attention_heads") or 16)
    patches = merge**2
    return Memory(
        VALUE_BYTES * (patches * (pixels + hidden + 2 * head) + out),
        VALUE_BYTES * (patches * (LIVE_HIDDEN * hidden + LIVE_WIDE * wide) + out),
        limit_bytes,
    )
