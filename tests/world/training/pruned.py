"""EVS and VidCom2 over a batch of clips of different lengths, on the device: `vidpipe.pruning`'s rules in torch.

The text model learns with the tokens that a pruned run would leave it. Besides the two there is `scattered`, which
drops at random: no rule's habits can then be relied upon.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch
from torch import Tensor

from vidpipe.pruning.vidcom2 import BANDWIDTHS, TEMPERATURE

METHODS = ("none", "evs", "vidcom2", "scattered")
FIRST = 255.0


@dataclass(frozen=True)
class Pruning:
    """What is dropped of each clip."""

    method: Tensor
    """[B]: place in `METHODS`."""
    rate: Tensor
    """[B]: share to drop, float64 (counts are literal float arithmetic)."""


def draw_pruning(clips: int, share: float, rng: random.Random) -> Pruning:
    """A method and a rate for each clip; `share` of them are pruned."""
    methods = [rng.choice((1, 1, 2, 2, 3)) if rng.random() < share else 0 for _ in range(clips)]
    rates = [0.5 if rng.random() < 0.5 else rng.uniform(0.1, 0.8) for _ in range(clips)]
    return Pruning(torch.tensor(methods), torch.tensor(rates, dtype=torch.float64))


def same_pruning(method: str, rate: float, clips: int, device: torch.device | str) -> Pruning:
    """One method and rate for all clips."""
    return Pruning(
        torch.full((clips,), METHODS.index(method), device=device),
        torch.full((clips,), rate, dtype=torch.float64, device=device),
    )


def kept(embeddings: Tensor, pairs: Tensor, pruning: Pruning) -> Tensor:
    """Which vision tokens stay, [B, T tokens].

    Args:
        embeddings: [B, T, tokens a pair, channels], deepstack levels included.
        pairs: [B]: pairs that each clip has; what is behind them never stays.
        pruning: What is asked for.
    """
    _, steps, each, _ = embeddings.shape
    real = (torch.arange(steps, device=embeddings.device) < pairs[:, None])[..., None]
    whole = (each * pairs.long()).double()
    left = (whole * (1 - pruning.rate)).long()
    counts = torch.stack(
        [whole.long(), left.clamp(min=each), torch.maximum(left, pairs.long()), torch.maximum(left, pairs.long())]
    )
    count = counts.gather(0, pruning.method[None])[0]
    unit = torch.nn.functional.normalize(embeddings, dim=-1, eps=1e-8)
    change = torch.full(embeddings.shape[:3], FIRST, device=embeddings.device)
    change[:, 1:] = 1 - (unit[:, 1:] * unit[:, :-1]).sum(-1)
    alike = _vidcom2_keys(embeddings, real, pruning.rate)
    chance = torch.rand(embeddings.shape[:3], device=embeddings.device)
    method = pruning.method.view(-1, 1, 1)
    keys = torch.where(method == 1, -change, torch.where(method == 2, alike, chance))
    keys = keys.masked_fill(~real, torch.inf).flatten(1)
    rank = keys.argsort(dim=1, stable=True).argsort(dim=1)
    return (rank < count[:, None]) & real.expand(-1, -1, each).flatten(1)


def _vidcom2_keys(embeddings: Tensor, real: Tensor, rate: Tensor) -> Tensor:
    """[B, T, tokens]: those with the smallest keys stay, the ones within their pair's share before all others."""
    clips, steps, each, channels = embeddings.shape
    weight = real.expand(-1, -1, each).flatten(1)[..., None].float()
    flat, total = embeddings.flatten(1, 2), weight.sum(1, keepdim=True)
    mean = (flat * weight).sum(1, keepdim=True) / total
    spread = ((flat - mean) ** 2 * weight).sum(1)
    calm = spread.argsort(dim=1, stable=True)[:, : max(1, channels // 2)]
    tokens = flat.gather(2, calm[:, None].expand(-1, steps * each, -1))
    tokens = torch.nn.functional.normalize(tokens, dim=-1, eps=1e-12)
    to_video = _closeness(tokens, (tokens * weight).sum(1, keepdim=True) / total).view(clips, steps, each)
    by_pair = tokens.view(clips, steps, each, -1)
    similarity = to_video + _closeness(by_pair, by_pair.mean(2, keepdim=True))
    distinct = -to_video.mean(2).masked_fill(~real[..., 0], torch.inf)
    weights = torch.softmax(distinct / TEMPERATURE, dim=1)
    centre = weights.sum(1, keepdim=True) / real[..., 0].sum(1, keepdim=True)
    scale = ((1 - rate[:, None].float()) * (1 + weights - centre)).clamp(max=1)
    share = (scale * each).round().clamp(1, each)
    rank = similarity.argsort(dim=2, stable=True).argsort(dim=2)
    within = rank < share[..., None]
    return torch.where(within, similarity, similarity + 1e3)


def _closeness(tokens: Tensor, centre: Tensor) -> Tensor:
    squared = ((tokens - centre) ** 2).sum(-1)
    return torch.stack([torch.exp(-squared / (2 * width)) for width in BANDWIDTHS]).sum(0)
