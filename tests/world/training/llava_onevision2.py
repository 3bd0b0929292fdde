"""LLaVA-OneVision-2: architecture, patches and the tower's forward pass; transformers has no class for it.

Source: vLLM `model_executor/models/llava_onevision2.py` (`LlavaOnevision2VisionTower`). Frames come as images, so each
is seen alone and the time in its rotary positions is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from tests.checkpoints.llava_onevision2 import IMAGE_MEAN, IMAGE_STD, MERGE, PATCH, Sizes, shapes, write_configs
from tests.world.training.network import Network, Weights, in_blocks
from tests.world.training.vocabulary import Vocabulary
from tests.world.view import LLAVA_ONEVISION2

SIZES = Sizes(
    width=256,
    inner=704,
    layers=7,
    heads=4,
    key_value_heads=2,
    head=64,
    vision_width=192,
    vision_inner=512,
    vision_layers=4,
    vision_heads=3,
    rope_theta=1e4,
    max_pixels=LLAVA_ONEVISION2.bounds["longest_edge"],
)
"""7.8 million parameters; the text model is that of the Qwen3-VL one, the tower's heads have 64 channels."""
DEVIATION = 0.02
"""Of the first random weights."""


class Parameters(torch.nn.Module):
    """Parameters by the names of a checkpoint, and its configuration as far as training reads it."""

    def __init__(self, sizes: Sizes, vocabulary: int) -> None:
        super().__init__()
        self.sizes = sizes
        text = {
            "hidden_size": sizes.width,
            "num_hidden_layers": sizes.layers,
            "head_dim": sizes.head,
            "rope_parameters": {"rope_theta": sizes.rope_theta},
        }
        self.config = SimpleNamespace(text_config=SimpleNamespace(**text), vision_config=SimpleNamespace())
        for name, shape in shapes(sizes, vocabulary).items():
            *path, last = name.split(".")
            module: torch.nn.Module = self
            for part in path:
                if part not in module._modules:
                    module.add_module(part, torch.nn.Module())
                module = module.get_submodule(part)
            flat = torch.zeros if last == "bias" else torch.ones
            value = torch.randn(shape) * DEVIATION if len(shape) > 1 else flat(shape)
            module.register_parameter(last, torch.nn.Parameter(value))


def new_model(words: Vocabulary) -> Parameters:
    """Random weights in float32."""
    return Parameters(SIZES, words.rows)


def write(model: Parameters, words: Vocabulary, folder: Path) -> None:
    """Weights in bfloat16 and configuration, as a checkpoint that vLLM loads."""
    from safetensors.torch import save_file

    weights = {name: value.detach().bfloat16().contiguous() for name, value in model.named_parameters()}
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})
    write_configs(folder, {**words.special, "size": words.rows}, model.sizes)


def patches(clip: Tensor, rows: int, columns: int) -> Tensor:
    """Clip [B, T, 3, height, width], 0 to 255, resized and cut as the image processor does it: [B, T, patches, 588].

    Args:
        clip: Pictures.
        rows: Of vision tokens, to which the pictures are resized.
        columns: Likewise.
    """
    clips, frames, channels = clip.shape[:3]
    size = (rows * MERGE * PATCH, columns * MERGE * PATCH)
    if clip.shape[3:] != size:
        whole = F.interpolate(clip.flatten(0, 1), size, mode="bicubic", antialias=True)
        clip = whole.clamp(0, 255).round().view(clips, frames, channels, *size)
    mean, deviation = (torch.tensor(values, device=clip.device).view(3, 1, 1) for values in (IMAGE_MEAN, IMAGE_STD))
    scaled = (clip / 255 - mean) / deviation
    cut = scaled.view(clips, frames, channels, rows, MERGE, PATCH, columns, MERGE, PATCH)
    return cut.permute(0, 1, 3, 6, 4, 7, 2, 5, 8).reshape(clips, frames, -1, channels * PATCH**2)


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """As upstream turns: neighbouring channels are paired, but their angles are not alike."""
    swapped = torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)
    return x * cos + swapped * sin


def tower_in(x: Tensor, cos: Tensor, sin: Tensor, heads: int, w: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values [N, heads, patches, channels] of a block."""
    frames, length, width = x.shape
    qkv = F.linear(F.layer_norm(x, (width,), w[0], w[1], 1e-6), w[2], w[3])
    query, key, value = qkv.view(frames, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
    return (
        _turned(query.float(), cos, sin).to(x.dtype),
        _turned(key.float(), cos, sin).to(x.dtype),
        value.contiguous(),
    )


def tower_out(x: Tensor, mixed: Tensor, w: Sequence[Tensor]) -> Tensor:
    """The rest of a block."""
    x = x + F.linear(mixed.transpose(1, 2).reshape(x.shape), w[0], w[1])
    inner = F.linear(F.layer_norm(x, x.shape[-1:], w[2], w[3], 1e-6), w[4], w[5])
    return x + F.linear(F.gelu(inner), w[6], w[7])


TOWER_IN = ("layer_norm1.weight", "layer_norm1.bias", "self_attn.qkv.weight", "self_attn.qkv.bias")
TOWER_OUT = (
    *("self_attn.proj.weight", "self_attn.proj.bias", "layer_norm2.weight", "layer_norm2.bias"),
    *("mlp.fc1.weight", "mlp.fc1.bias", "mlp.fc2.weight", "mlp.fc2.bias"),
)


class LlavaOnevision2Network(Network):
    """Frames one by one, rotary positions alone."""

    vision_parts = (tower_in, tower_out)

    def encode(self, weights: Weights, pixels: Tensor, rows: int, columns: int) -> list[Tensor]:
        """See `Network.encode`."""
        sizes: Sizes = self.model.sizes
        part = lambda names, at: [weights[f"model.visual.{at}.{name}"] for name in names]  # noqa: E731
        both = ("weight", "bias")
        (patch,) = part(("weight",), "embeddings.patch_embedding")
        x = F.linear(pixels.flatten(0, 1), patch.flatten(1))
        x = F.layer_norm(x, x.shape[-1:], *part(both, "layernorm_pre"), 1e-6)
        cos, sin = _angles(sizes.vision_width // sizes.vision_heads, MERGE * rows, MERGE * columns, x.device)
        for layer in range(sizes.vision_layers):
            at = f"encoder.layers.{layer}"
            query, key, value = self.parts["tower_in"](x, cos, sin, sizes.vision_heads, part(TOWER_IN, at))
            mixed = F.scaled_dot_product_attention(query, key, value)
            x = self.parts["tower_out"](x, mixed, part(TOWER_OUT, at))
        x = F.layer_norm(x, x.shape[-1:], *part(both, "merger.ln_q"), 1e-6)
        joined = x.reshape(-1, x.shape[-1] * MERGE**2)
        inner = F.gelu(F.linear(joined, *part(both, "merger.mlp.0")))
        return [F.linear(inner, *part(both, "merger.mlp.2"))]


def _angles(channels: int, height: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Cosines and sines [patches, channels] of a frame's patches: a quarter of half the channels for the time (0)."""
    half = channels // 2
    for_time, for_side = half // 4, 3 * half // 8
    speed = 1.0 / 10_000.0 ** (torch.arange(for_side, device=device, dtype=torch.float32) / for_side)
    down, across = torch.meshgrid(
        torch.arange(height, device=device), torch.arange(width, device=device), indexing="ij"
    )
    still = torch.zeros(height, width, for_time, device=device)
    angles = in_blocks(torch.cat([still, down[..., None] * speed, across[..., None] * speed], -1))
    angles = torch.cat([angles, angles], -1)
    return angles.cos(), angles.sin()
