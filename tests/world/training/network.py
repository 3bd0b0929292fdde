"""Qwen3-VL's forward pass for training: transformers' weights, many clips at a time.

transformers encodes frame pairs one after another in Python and works positions out clip by clip; here a batch is one
call. The numbers are the same (`tests/world/test_training.py`), so what is trained here runs there and in vLLM.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from tests.world.training.pruned import Pruning, kept
from tests.world.training.vocabulary import CLOSE, PAD, Vocabulary
from vidpipe.models.qwen3_vl_prompt import END, IMAGE, START, VIDEO

PATCH, MERGE = 16, 2
POSITIONS_A_SIDE = 8
NEVER = -1e4
Weights = Mapping[str, Tensor]


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


def patches(clip: Tensor) -> Tensor:
    """Clip [B, 2 T, 3, height, width], 0 to 255, as the video processor cuts it: [B, T, patches, 1536]."""
    clips, frames, _, height, width = clip.shape
    rows, columns = height // (PATCH * MERGE), width // (PATCH * MERGE)
    scaled = (clip / 255 - 0.5) / 0.5
    cut = scaled.view(clips, frames // 2, 2, 3, rows, MERGE, PATCH, columns, MERGE, PATCH)
    order = cut.permute(0, 1, 4, 7, 5, 8, 3, 2, 6, 9)
    return order.reshape(clips, frames // 2, rows * columns * MERGE**2, 3 * 2 * PATCH**2)


def _in_blocks(plane: Tensor) -> Tensor:
    """[rows, columns, ...] of patches in the order of the processor: merged cells one after another."""
    rows, columns = plane.shape[0] // MERGE, plane.shape[1] // MERGE
    return plane.view(rows, MERGE, columns, MERGE, -1).transpose(1, 2).reshape(rows * columns * MERGE**2, -1)


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.float().chunk(2, -1)
    return (x.float() * cos + torch.cat((-second, first), -1) * sin).to(x.dtype)


def _rms(x: Tensor, weight: Tensor) -> Tensor:
    full = x.float()
    return weight * (full * torch.rsqrt(full.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def vision_in(x: Tensor, cos: Tensor, sin: Tensor, heads: int, w: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values [N, heads, patches, channels] of a vision block."""
    pairs, length, width = x.shape
    qkv = F.linear(F.layer_norm(x, (width,), w[0], w[1], 1e-6), w[2], w[3])
    query, key, value = qkv.view(pairs, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
    return _turned(query, cos, sin), _turned(key, cos, sin), value.contiguous()


def vision_out(x: Tensor, mixed: Tensor, w: Sequence[Tensor]) -> Tensor:
    """The rest of a vision block."""
    x = x + F.linear(mixed.transpose(1, 2).reshape(x.shape), w[0], w[1])
    inner = F.linear(F.layer_norm(x, x.shape[-1:], w[2], w[3], 1e-6), w[4], w[5])
    return x + F.linear(F.gelu(inner, approximate="tanh"), w[6], w[7])


def text_in(x: Tensor, cos: Tensor, sin: Tensor, w: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values [B, heads, S, channels] of a text block; keys and values repeated for their group."""
    clips, length, _ = x.shape
    size = w[4].shape[0]
    normed = _rms(x, w[0])
    query, key, value = (F.linear(normed, weight).view(clips, length, -1, size) for weight in w[1:4])
    group = query.shape[2] // key.shape[2]
    query, key = _turned(_rms(query, w[4]), cos, sin), _turned(_rms(key, w[5]), cos, sin)
    key, value = key.repeat_interleave(group, 2), value.repeat_interleave(group, 2)
    return query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)


def text_out(x: Tensor, mixed: Tensor, w: Sequence[Tensor]) -> Tensor:
    """The rest of a text block."""
    x = x + F.linear(mixed.transpose(1, 2).flatten(2), w[0])
    normed = _rms(x, w[1])
    return x + F.linear(F.silu(F.linear(normed, w[2])) * F.linear(normed, w[3]), w[4])


VISION_IN = ("norm1.weight", "norm1.bias", "attn.qkv.weight", "attn.qkv.bias")
VISION_OUT = (
    *("attn.proj.weight", "attn.proj.bias", "norm2.weight", "norm2.bias"),
    *("mlp.linear_fc1.weight", "mlp.linear_fc1.bias", "mlp.linear_fc2.weight", "mlp.linear_fc2.bias"),
)
TEXT_IN = (
    *("input_layernorm.weight", "self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"),
    *("self_attn.q_norm.weight", "self_attn.k_norm.weight"),
)
TEXT_OUT = (
    *("self_attn.o_proj.weight", "post_attention_layernorm.weight", "mlp.gate_proj.weight", "mlp.up_proj.weight"),
    "mlp.down_proj.weight",
)


class Network:
    """The forward pass over a model's weights."""

    def __init__(self, model: Any, dtype: torch.dtype, compiled: bool) -> None:
        self.model, self.dtype = model, dtype
        named = dict(model.named_parameters())
        self._whole = list(named.values())
        # In bfloat16 the pass has leaves of its own: a cast and its gradient each step would be 400 small kernels.
        self.weights: dict[str, Tensor] = {
            name: weight if weight.dtype == dtype else weight.detach().to(dtype).requires_grad_()
            for name, weight in named.items()
        }
        self.parts: dict[str, Callable[..., Any]] = {
            part.__name__: torch.compile(part, dynamic=True) if compiled else part
            for part in (vision_in, vision_out, text_in, text_out)
        }

    def hand_over(self) -> None:
        """Give the gradients to the model's own parameters."""
        if self._whole[0].dtype != self.dtype:
            both = zip(self._whole, self.weights.values(), strict=True)
            used = [(weight, own) for weight, own in both if own.grad is not None]
            gradients = [torch.empty_like(weight) for weight, _ in used]
            torch._foreach_copy_(gradients, [own.grad for _, own in used])
            for (weight, own), gradient in zip(used, gradients, strict=True):
                weight.grad, own.grad = gradient, None

    def refresh(self) -> None:
        """Take the model's parameters as they are now."""
        if self._whole[0].dtype != self.dtype:
            with torch.no_grad():
                torch._foreach_copy_(list(self.weights.values()), self._whole)

    def __call__(self, pixels: Tensor, given: Mapping[str, Tensor], pruning: Pruning | None) -> Tensor:
        """Logits [answer tokens, vocabulary] at `given["places"]`.

        Args:
            pixels: [B, T, patches, 1536].
            given: The arrays of a `Batch` by name, and `size`: rows and columns of vision tokens.
            pruning: Which vision tokens the text model does not see; None for none.
        """
        return self.listen(pixels, given, pruning, ())[0]

    def listen(
        self, pixels: Tensor, given: Mapping[str, Tensor], pruning: Pruning | None, layers: Sequence[int]
    ) -> tuple[Tensor, list[Tensor]]:
        """Logits, and hidden states: `tokens`, then those [B, S, hidden] after `layers`."""
        tokens, stays = self.tokens(pixels, given), None
        if pruning is not None:
            rows, columns = (int(side) for side in given["size"])
            apart = torch.cat(tokens, -1).detach().float().view(len(pixels), pixels.shape[1], rows * columns, -1)
            stays = kept(apart, given["pairs"], pruning)
        logits, heard = self.answer(self.weights, tokens, given, stays, layers)
        return logits, [*tokens, *heard]

    def tokens(self, pixels: Tensor, given: Mapping[str, Tensor]) -> list[Tensor]:
        """What the encoder makes of each clip, [B, T tokens, hidden]: the embeddings, then each deepstack level."""
        rows, columns = (int(side) for side in given["size"])
        levels = self.encode(self.weights, pixels.to(self.dtype), rows, columns)
        return [level.view(len(pixels), -1, level.shape[-1]) for level in levels]

    def encode(self, weights: Weights, pixels: Tensor, rows: int, columns: int) -> list[Tensor]:
        """Embeddings [B T tokens, hidden] after the encoder, then those of each deepstack level."""
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
        angles = _in_blocks(torch.cat([down[..., None] * speed, across[..., None] * speed], -1))
        angles = torch.cat([angles, angles], -1)
        return _in_blocks(place.contiguous()), angles.cos(), angles.sin()

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

    def answer(
        self,
        weights: Weights,
        tokens: Sequence[Tensor],
        given: Mapping[str, Tensor],
        stays: Tensor | None,
        layers: Sequence[int] = (),
    ) -> tuple[Tensor, list[Tensor]]:
        """Logits at the answers' places, from each level's tokens [B, T tokens, hidden]; states after `layers`."""
        vision, part = given["vision"].long(), given["part"]
        is_vision = (vision >= 0)[..., None]
        spread = lambda level: level.gather(1, vision.clamp(min=0)[..., None].expand(-1, -1, level.shape[-1]))  # noqa: E731
        at = lambda names, layer: [weights[f"model.language_model.layers.{layer}.{name}"] for name in names]  # noqa: E731
        x = F.embedding(given["ids"].long(), weights["model.language_model.embed_tokens.weight"])
        x = torch.where(is_vision, spread(tokens[0]), x)
        cos, sin = self._text_angles(given["positions"])
        mask, heard = self._mask(part, vision, stays), []
        for layer in range(self.model.config.text_config.num_hidden_layers):
            query, key, value = self.parts["text_in"](x, cos, sin, at(TEXT_IN, layer))
            mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
            x = self.parts["text_out"](x, mixed, at(TEXT_OUT, layer))
            if layer + 1 < len(tokens):
                x = x + torch.where(is_vision, spread(tokens[layer + 1]), 0)
            if layer in layers:
                heard.append(x)
        x = _rms(x.flatten(0, 1)[given["places"]], weights["model.language_model.norm.weight"])
        return F.linear(x, weights["lm_head.weight"]), heard

    def _text_angles(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines [B, S, 1, channels] of positions [3, B, S], axes interleaved."""
        rope = self.model.config.text_config.rope_parameters
        channels = self.model.config.text_config.head_dim
        steps = torch.arange(0, channels, 2, device=positions.device, dtype=torch.float32) / channels
        turned = positions[..., None].float() * (1.0 / rope["rope_theta"] ** steps)
        angles = turned[0].clone()
        for axis in (1, 2):
            end = 3 * rope["mrope_section"][axis]
            angles[..., axis:end:3] = turned[axis][..., axis:end:3]
        angles = torch.cat([angles, angles], -1)[:, :, None]
        return angles.cos(), angles.sin()

    def _mask(self, part: Tensor, vision: Tensor, stays: Tensor | None) -> Tensor:
        """What each place does not see, [B, 1, S, S]: later places, other questions, padding, dropped tokens."""
        length = part.shape[1]
        shown = part >= 0
        if stays is not None:
            shown = shown & ((vision < 0) | stays.gather(1, vision.clamp(min=0)))
        earlier = torch.ones(length, length, dtype=torch.bool, device=part.device).tril()
        related = (part[:, None, :] == 0) | (part[:, None, :] == part[:, :, None])
        seen = earlier & related & shown[:, None, :]
        seen = seen | torch.eye(length, dtype=torch.bool, device=part.device)  # a row that sees nothing has no softmax
        return torch.where(seen, 0.0, NEVER).to(self.dtype)[:, None]
