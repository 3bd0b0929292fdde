"""Qwen3-VL: architecture, patches and the encoder's forward pass over transformers' weights."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from tests.world.training.network import MERGE, Network, Weights, in_blocks, turned
from tests.world.training.vocabulary import CLOSE, PAD, Vocabulary
from vidpipe.models.qwen3_vl_prompt import END, IMAGE, START, VIDEO

SHIPPED = Path(__file__).resolve().parents[3] / "data" / "tiny-qwen3vl"
PATCH = 16
POSITIONS_A_SIDE = 8


def config(words: Vocabulary) -> Any:
    """The architecture: 9.5 million parameters."""
    from transformers import Qwen3VLConfig

    rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [12, 10, 10], "mrope_interleaved": True}
    text = {
        "vocab_size": words.rows,
        "hidden_size": 256,
        "intermediate_size": 704,
        "num_hidden_layers": 7,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "max_position_embeddings": 32768,
        "rope_theta": 1e4,
        "rope_scaling": rope,
        "tie_word_embeddings": False,
    }
    vision = {
        "depth": 4,
        "hidden_size": 192,
        "intermediate_size": 512,
        "num_heads": 4,
        "out_hidden_size": 256,
        "patch_size": PATCH,
        "spatial_merge_size": MERGE,
        "temporal_patch_size": 2,
        "num_position_embeddings": POSITIONS_A_SIDE**2,
        "deepstack_visual_indexes": [1, 2],
    }
    return Qwen3VLConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=words.special[IMAGE],
        video_token_id=words.special[VIDEO],
        vision_start_token_id=words.special[START],
        vision_end_token_id=words.special[END],
        tie_word_embeddings=False,
    )


def new_model(words: Vocabulary) -> Any:
    """A transformers model with random weights, in float32."""
    from transformers import Qwen3VLForConditionalGeneration

    model = Qwen3VLForConditionalGeneration(config(words)).float()
    model.generation_config.eos_token_id = words.special[CLOSE]
    model.generation_config.pad_token_id = words.special[PAD]
    return model


def write(model: Any, words: Vocabulary, folder: Path) -> None:
    """Weights in bfloat16 and configuration; the processors' settings are those of the checkpoint that ships."""
    model.bfloat16().save_pretrained(folder)
    for name in ("preprocessor_config.json", "video_preprocessor_config.json"):
        if folder.resolve() != SHIPPED:
            shutil.copy(SHIPPED / name, folder)


def patches(clip: Tensor, rows: int, columns: int) -> Tensor:
    """Clip [B, 2 T, 3, height, width], 0 to 255, as the video processor cuts it: [B, T, patches, 1536]."""
    clips, frames, _, height, width = clip.shape
    assert (height, width) == (rows * MERGE * PATCH, columns * MERGE * PATCH), "these pictures keep their size"
    scaled = (clip / 255 - 0.5) / 0.5
    cut = scaled.view(clips, frames // 2, 2, 3, rows, MERGE, PATCH, columns, MERGE, PATCH)
    order = cut.permute(0, 1, 4, 7, 5, 8, 3, 2, 6, 9)
    return order.reshape(clips, frames // 2, rows * columns * MERGE**2, 3 * 2 * PATCH**2)


def vision_in(x: Tensor, cos: Tensor, sin: Tensor, heads: int, w: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values [N, heads, patches, channels] of a vision block."""
    pairs, length, width = x.shape
    qkv = F.linear(F.layer_norm(x, (width,), w[0], w[1], 1e-6), w[2], w[3])
    query, key, value = qkv.view(pairs, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
    return turned(query, cos, sin), turned(key, cos, sin), value.contiguous()


def vision_out(x: Tensor, mixed: Tensor, w: Sequence[Tensor]) -> Tensor:
    """The rest of a vision block."""
    x = x + F.linear(mixed.transpose(1, 2).reshape(x.shape), w[0], w[1])
    inner = F.linear(F.layer_norm(x, x.shape[-1:], w[2], w[3], 1e-6), w[4], w[5])
    return x + F.linear(F.gelu(inner, approximate="tanh"), w[6], w[7])


VISION_IN = ("norm1.weight", "norm1.bias", "attn.qkv.weight", "attn.qkv.bias")
VISION_OUT = (
    *("attn.proj.weight", "attn.proj.bias", "norm2.weight", "norm2.bias"),
    *("mlp.linear_fc1.weight", "mlp.linear_fc1.bias", "mlp.linear_fc2.weight", "mlp.linear_fc2.bias"),
)


class Qwen3VLNetwork(Network):
    """Frames in pairs, learned and rotary positions, deepstack levels."""

    vision_parts = (vision_in, vision_out)

    def encode(self, weights: Weights, pixels: Tensor, rows: int, columns: int) -> list[Tensor]:
        """See `Network.encode`."""
        vision = self.model.config.vision_config
        part = lambda names, at: [weights[f"model.visual.{at}.{name}"] for name in names]  # noqa: E731
        patch, bias = part(("weight", "bias"), "patch_embed.proj")
        x = F.linear(pixels.flatten(0, 1), patch.flatten(1), bias)
        place, cos, sin = self._vision_positions(weights, 2 * rows, 2 * columns)
        x = x + place.to(x.dtype)
        deep = []
        for layer in range(vision.depth):
            at = f"blocks.{layer}"
            query, key, value = self.parts["vision_in"](x, cos, sin, vision.num_heads, part(VISION_IN, at))
            mixed = F.scaled_dot_product_attention(query, key, value)
            x = self.parts["vision_out"](x, mixed, part(VISION_OUT, at))
            if layer in vision.deepstack_visual_indexes:
                level = vision.deepstack_visual_indexes.index(layer)
                deep.append(self._merge(weights, f"model.visual.deepstack_merger_list.{level}", x, after=True))
        return [self._merge(weights, "model.visual.merger", x, after=False), *deep]

    def _vision_positions(self, weights: Weights, height: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
        """Position embeddings [patches, hidden], cosines and sines [patches, channels] of a grid of patches."""
        table = weights["model.visual.pos_embed.weight"]
        grid = table.float().view(1, POSITIONS_A_SIDE, POSITIONS_A_SIDE, -1).permute(0, 3, 1, 2)
        place = F.interpolate(grid, (height, width), mode="bilinear", align_corners=True)[0].permute(1, 2, 0)
        vision = self.model.config.vision_config
        channels = vision.hidden_size // vision.num_heads
        steps = torch.arange(0, channels // 2, 2, device=table.device, dtype=torch.float32) / (channels // 2)
        speed = 1.0 / 10_000.0**steps
        down, across = torch.meshgrid(
            torch.arange(height, device=table.device), torch.arange(width, device=table.device), indexing="ij"
        )
        angles = in_blocks(torch.cat([down[..., None] * speed, across[..., None] * speed], -1))
        angles = torch.cat([angles, angles], -1)
        return in_blocks(place.contiguous()), angles.cos(), angles.sin()

    @staticmethod
    def _merge(weights: Weights, at: str, x: Tensor, *, after: bool) -> Tensor:
        """Four neighbouring patches to one token; the norm before they are joined, or after."""
        norm = [weights[f"{at}.norm.{name}"] for name in ("weight", "bias")]
        joined = x.reshape(-1, x.shape[-1] * MERGE**2)
        x = (
            F.layer_norm(joined, joined.shape[-1:], *norm, 1e-6)
            if after
            else F.layer_norm(x, x.shape[-1:], *norm, 1e-6)
        )
        first, second = ([weights[f"{at}.linear_fc{n}.{name}"] for name in ("weight", "bias")] for n in (1, 2))
        return F.linear(F.gelu(F.linear(x.reshape(joined.shape), *first)), *second)
