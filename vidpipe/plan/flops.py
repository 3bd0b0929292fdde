"""Floating-point operations of a vision-language model, from the shapes that its config.json states. Pure.

A multiplication with a weight is 2 operations (Kaplan et al., arXiv:2001.08361, section 2.1); attention
adds 4 x width for each pair of a token and one that it sees. Norms, embeddings and activations are left
out. Of mixtures of experts those count that a token goes through.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Costs:
    """Operations of one model."""

    per_patch: float
    """Of the vision encoder, for a patch before merging, without attention."""
    per_patch_pair: float
    """For each other patch that a patch attends to."""
    per_token: float
    """Of the language model, without attention."""
    per_token_pair: float

    def encode(self, patches: int, patches_together: int) -> float:
        """To encode patches that attend to each other within groups.

        Args:
            patches: All of them.
            patches_together: In one group: of a frame, or of a temporal patch.
        """
        return patches * (self.per_patch + self.per_patch_pair * patches_together)

    def prefill(self, tokens: int, before: int = 0) -> float:
        """To read tokens of a prompt behind `before` others that are computed already."""
        return tokens * (self.per_token + self.per_token_pair * (before + tokens / 2))


def costs_of(config: Mapping[str, Any]) -> Costs | None:
    """The costs of a checkpoint; None where its config does not have the usual keys.

    Args:
        config: Its config.json.
    """
    text, vision = config.get("text_config", config), config.get("vision_config", {})
    try:
        layers, hidden, heads = (text[key] for key in ("num_hidden_layers", "hidden_size", "num_attention_heads"))
        head = text.get("head_dim") or hidden // heads
        kv_heads = text.get("num_key_value_heads") or heads
        mixers = 2 * hidden * head * (heads + kv_heads)  # query and output, key and value
        experts = text.get("num_experts_per_tok") or text.get("moe_k") or 1
        wide = text.get("moe_intermediate_size") or text["intermediate_size"]
        wide = wide[0] if isinstance(wide, list) else wide
        depth = vision.get("depth") or vision["num_hidden_layers"]
        width = vision.get("hidden_size") or vision["embed_dim"]
        vision_wide = vision.get("intermediate_size") or int(width * vision.get("mlp_ratio", 4))
        return Costs(
            per_patch=2.0 * depth * (4 * width**2 + 2 * width * vision_wide),
            per_patch_pair=4.0 * depth * width,
            per_token=2.0 * layers * (mixers + experts * 3 * hidden * wide),
            per_token_pair=4.0 * layers * heads * head,
        )
    except (KeyError, TypeError):
        return None
