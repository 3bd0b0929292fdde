"""The forward pass for training over the weights of a checkpoint: many clips at a time, the text model here.

transformers and vLLM encode clip by clip; here a batch is one call. The numbers are the same
(`tests/world/test_training.py`), so what is trained here runs there. Each family adds its encoder.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from tests.world.training.pruned import Pruning, kept

MERGE = 2
NEVER = -1e4
Weights = Mapping[str, Tensor]


def in_blocks(plane: Tensor) -> Tensor:
    """[rows, columns, ...] of patches in the order of the processors: merged cells one after another."""
    rows, columns = plane.shape[0] // MERGE, plane.shape[1] // MERGE
    return plane.view(rows, MERGE, columns, MERGE, -1).transpose(1, 2).reshape(rows * columns * MERGE**2, -1)


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """`x` [..., channels] under rotary embedding, each channel paired with the one half of them away."""
    first, second = x.float().chunk(2, -1)
    return (x.float() * cos + torch.cat((-second, first), -1) * sin).to(x.dtype)


def _rms(x: Tensor, weight: Tensor) -> Tensor:
    full = x.float()
    return weight * (full * torch.rsqrt(full.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def text_in(x: Tensor, cos: Tensor, sin: Tensor, w: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values [B, heads, S, channels] of a text block; keys and values repeated for their group."""
    clips, length, _ = x.shape
    size = w[4].shape[0]
    normed = _rms(x, w[0])
    query, key, value = (F.linear(normed, weight).view(clips, length, -1, size) for weight in w[1:4])
    group = query.shape[2] // key.shape[2]
    query, key = turned(_rms(query, w[4]), cos, sin), turned(_rms(key, w[5]), cos, sin)
    key, value = key.repeat_interleave(group, 2), value.repeat_interleave(group, 2)
    return query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)


def text_out(x: Tensor, mixed: Tensor, w: Sequence[Tensor]) -> Tensor:
    """The rest of a text block."""
    x = x + F.linear(mixed.transpose(1, 2).flatten(2), w[0])
    normed = _rms(x, w[1])
    return x + F.linear(F.silu(F.linear(normed, w[2])) * F.linear(normed, w[3]), w[4])


TEXT_IN = (
    *("input_layernorm.weight", "self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"),
    *("self_attn.q_norm.weight", "self_attn.k_norm.weight"),
)
TEXT_OUT = (
    *("self_attn.o_proj.weight", "post_attention_layernorm.weight", "mlp.gate_proj.weight", "mlp.up_proj.weight"),
    "mlp.down_proj.weight",
)


class Network(ABC):
    """The forward pass over a model's weights."""

    vision_parts: Sequence[Callable[..., Any]]
    """Functions of the encoder that are compiled."""

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
            for part in (*self.vision_parts, text_in, text_out)
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
            pixels: [B, T, patches, values].
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
            stays = kept(apart, given["steps"], pruning)
        logits, heard = self.answer(self.weights, tokens, given, stays, layers)
        return logits, [*tokens, *heard]

    def tokens(self, pixels: Tensor, given: Mapping[str, Tensor]) -> list[Tensor]:
        """What the encoder makes of each clip, [B, T tokens, hidden]: the embeddings, then each deepstack level."""
        rows, columns = (int(side) for side in given["size"])
        levels = self.encode(self.weights, pixels.to(self.dtype), rows, columns)
        return [level.view(len(pixels), -1, level.shape[-1]) for level in levels]

    @abstractmethod
    def encode(self, weights: Weights, pixels: Tensor, rows: int, columns: int) -> list[Tensor]:
        """Embeddings [B T tokens, hidden] after the encoder, then those of each deepstack level, if there are any.

        Args:
            weights: By name.
            pixels: [B, T, patches, values].
            rows: Of a step's vision tokens.
            columns: Likewise.
        """

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
        turned_by = positions[..., None].float() * (1.0 / rope["rope_theta"] ** steps)
        angles = turned_by[0].clone()
        for axis, channels in enumerate(rope.get("mrope_section", (0, 0, 0))):  # none where the axes are alike
            if axis:
                angles[..., axis : 3 * channels : 3] = turned_by[axis][..., axis : 3 * channels : 3]
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
