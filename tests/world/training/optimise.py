"""Muon for the matrices inside the network, AdamW for the rest: fewer steps for the same loss than AdamW alone.

Muon replaces a matrix's momentum by the nearest matrix with all singular values alike (five steps of a Newton-Schulz
iteration; Jordan et al. 2024). Matrices of one shape are stacked: one by one they would be a thousand small kernels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

MOMENTUM = 0.95
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
DECAY = 0.05
AS_ADAM = 0.2
"""Root mean square of an update over the rate: about that of AdamW's, so that one rate suits both (Liu et al. 2025)."""
AVERAGES = ("exp_avg", "exp_avg_sq")


def orthogonal(stack: Tensor) -> Tensor:
    """Each matrix of [n, rows, columns] with its singular values drawn close to 1, in bfloat16."""
    a, b, c = NEWTON_SCHULZ
    x = stack.bfloat16()
    tall = x.shape[1] > x.shape[2]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(5):
        squared = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(squared, squared, squared, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


def is_matrix(name: str, parameter: Tensor) -> bool:
    """Whether Muon moves it: no embedding, no output layer, no bias or norm."""
    return parameter.ndim >= 2 and not any(other in name for other in ("embed_tokens", "pos_embed", "lm_head", "heads"))


class Optimiser:
    """Both, over named parameters that have gradients."""

    def __init__(self, named: Iterable[tuple[str, torch.nn.Parameter]], rate: float, matrix_rate: float) -> None:
        named = list(named)
        self.rate, self.matrix_rate = rate, matrix_rate
        self._stacks: dict[tuple[int, int], list[tuple[str, torch.nn.Parameter]]] = {}
        for name, parameter in named:
            if is_matrix(name, parameter):
                self._stacks.setdefault((len(parameter), parameter[0].numel()), []).append((name, parameter))
        self._momentum = {
            shape: torch.zeros(len(members), *shape, device=members[0][1].device)
            for shape, members in self._stacks.items()
        }
        self._others = {name: parameter for name, parameter in named if not is_matrix(name, parameter)}
        fused = next(iter(self._others.values())).device.type == "cuda"
        self._adam = torch.optim.AdamW(self._others.values(), lr=rate, betas=(0.9, 0.98), weight_decay=0.0, fused=fused)

    @torch.no_grad()
    def step(self, scale: float) -> None:
        """Move everything that has gradients at `scale` times its rate, and forget them."""
        for shape, members in self._stacks.items():
            present = [place for place, (_, parameter) in enumerate(members) if parameter.grad is not None]
            if not present:
                continue
            gradient = torch.zeros_like(self._momentum[shape])
            torch._foreach_copy_(
                [gradient[place] for place in present], [members[place][1].grad.view(shape) for place in present]
            )
            momentum = self._momentum[shape].lerp_(gradient, 1 - MOMENTUM)
            moved = orthogonal(gradient.lerp(momentum, MOMENTUM)).float()
            weights, rate = [members[place][1].view(shape) for place in present], self.matrix_rate * scale
            torch._foreach_mul_(weights, 1 - rate * DECAY)
            torch._foreach_add_(
                weights, [moved[place] for place in present], alpha=-rate * AS_ADAM * math.sqrt(max(shape))
            )
            for _, parameter in members:
                parameter.grad = None
        for group in self._adam.param_groups:
            group["lr"] = self.rate * scale
        self._adam.step()
        self._adam.zero_grad(set_to_none=True)

    def moments(self) -> dict[str, Tensor]:
        """What it remembers, as `<parameter>.exp_avg` and, for AdamW's, `<parameter>.exp_avg_sq`."""
        found = {}
        for shape, members in self._stacks.items():
            for (name, _), momentum in zip(members, self._momentum[shape].unbind(), strict=True):
                found[f"{name}.exp_avg"] = momentum
        for name, parameter in self._others.items():
            state = self._adam.state.get(parameter, {})
            found |= {f"{name}.{moment}": state[moment] for moment in AVERAGES if moment in state}
        return found

    def remember(self, moments: Mapping[str, Tensor], steps: int) -> None:
        """Take `moments` back, as far as they go."""
        for shape, members in self._stacks.items():
            for (name, _), momentum in zip(members, self._momentum[shape].unbind(), strict=True):
                if f"{name}.exp_avg" in moments:
                    momentum.copy_(moments[f"{name}.exp_avg"])
        for name, parameter in self._others.items():
            if f"{name}.exp_avg" in moments:
                state: dict[str, Any] = {
                    moment: moments[f"{name}.{moment}"].float().to(parameter.device) for moment in AVERAGES
                }
                state["step"] = torch.tensor(float(steps), device=parameter.device)
                self._adam.state[parameter] = state
