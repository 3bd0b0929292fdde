"""What lies under each vision token, and heads that learn to say it: a dense signal, in training only.

A few answer tokens a clip say little about what a token shows; here every token of every pair says it. The heads are no
part of the model, so nothing of them is exported.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from tests.world.pictures import Strokes, distance, placed
from tests.world.scene import COLOURS, SHAPES, VELOCITY
from tests.world.training.batch import PIXELS

STRIDE = 4
"""Pixels between the points at which a cell is looked at."""
COVERED, BARE = 0.03, 0.005
"""Share of a cell (mean of the pair's frames) from which it shows a thing, and below which it shows none."""
IGNORED = -100
RADII = (12.0, 15.0, 18.0, 21.0)
"""Pixels between classes of size."""
QUALITIES = {
    "colour": 1 + len(COLOURS),
    "shape": 1 + len(SHAPES),
    "size": 2 + len(RADII),
    "motion": 1 + len(VELOCITY),
    "news": 3,
}
"""What is said of a token -> number of classes; class 0 is background, of `news` 1 the first pair with the thing."""
BACKGROUND = 0.15
"""Weight of a background token; most tokens are."""


def covered(what: Strokes, width: int, height: int) -> Tensor:
    """Share of each vision token's cell that each thing covers, mean of its two frames: [B, things, pairs, tokens]."""
    x, y, shown = placed(what)
    clips, things, frames = x.shape
    across, down = (torch.arange(STRIDE / 2, side, STRIDE, device=x.device) for side in (width, height))
    radius, shape = (what.things[:, :, i].float().view(clips, things, 1, 1, 1) for i in (6, 7))
    inside = distance(across - x[..., None, None], down[:, None] - y[..., None, None], radius, shape) < 0
    inside = inside & shown[..., None, None]
    rows, columns, points = height // PIXELS, width // PIXELS, PIXELS // STRIDE
    cut = inside.view(clips, things, frames // 2, 2, rows, points, columns, points)
    return cut.float().mean((3, 5, 7)).flatten(3)


def labels(what: Strokes, width: int, height: int, pairs: Tensor) -> Tensor:
    """Class of each vision token, [qualities, B, pairs x tokens] in the order of `QUALITIES`.

    `IGNORED` stands where a thing covers a sliver only, and behind the last of a clip's `pairs` [B].
    """
    share = covered(what, width, height)
    most, which = share.max(1)
    steps = torch.arange(share.shape[2], device=share.device)
    shown = placed(what)[2].unflatten(2, (-1, 2)).any(3)
    first = torch.where(shown, steps, len(steps)).amin(2)
    x_way, y_way = what.things[:, :, 2].sign(), what.things[:, :, 3].sign()
    ways = torch.stack([(x_way == x) & (y_way == y) for x, y in VELOCITY.values()]).long().argmax(0)
    news = torch.where(first[:, :, None] == steps, 1, 2)
    size = torch.stack([what.things[:, :, 6] > edge for edge in RADII]).long().sum(0)
    named = torch.stack([what.things[:, :, 11].long(), what.things[:, :, 7].long(), size, ways]) + 1
    clip = torch.arange(len(which), device=which.device).view(-1, 1, 1)
    found = torch.cat([named[:, clip, which], news[clip, which, steps[:, None]][None]])
    found = torch.where(most >= COVERED, found, torch.where(most < BARE, 0, IGNORED))
    return found.masked_fill((steps >= pairs[:, None])[..., None], IGNORED).flatten(2)


class Heads(torch.nn.Module):
    """A linear layer for each place in the network that is listened to: the encoder's levels, then text layers."""

    def __init__(self, levels: int, layers: int, hidden: int) -> None:
        super().__init__()
        self.levels = levels
        classes = sum(QUALITIES.values())
        self.linears = torch.nn.ModuleList(torch.nn.Linear(hidden, classes) for _ in range(levels + layers))

    def loss(self, heard: Sequence[Tensor], target: Tensor, vision: Tensor) -> tuple[Tensor, Tensor]:
        """Mean cross-entropy, and the share right of the tokens with a thing [places heard, qualities].

        Args:
            heard: Hidden states, [B, tokens, hidden] of each level and [B, S, hidden] of each text layer, if those are
                heard.
            target: As `labels` gives it.
            vision: [B, S]: which vision token stands there, -1 for text.
        """
        where = vision.long().clamp(min=0).expand(len(target), -1, -1)
        spread = target.gather(2, where).masked_fill(vision < 0, IGNORED)
        losses, right = torch.zeros((), device=target.device), []
        for places, wanted in ((slice(self.levels), target), (slice(self.levels, len(heard)), spread)):
            said = [linear(states.float()) for linear, states in zip(self.linears[places], heard[places], strict=False)]
            if said:
                loss, hits = _judged(torch.stack(said), wanted)
                losses = losses + loss * len(said) / len(heard)
                right.append(hits)
        return losses, torch.cat(right)


def _judged(logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy of logits [places, B, N, classes of all qualities]; shares right [places, qualities]."""
    losses, right = [], []
    for one, wanted in zip(logits.split(list(QUALITIES.values()), -1), target, strict=True):
        weight = torch.ones(one.shape[-1], device=one.device)
        weight[0] = BACKGROUND
        everywhere = wanted.expand(len(one), -1, -1).flatten()
        losses.append(F.cross_entropy(one.flatten(0, 2), everywhere, weight, ignore_index=IGNORED))
        thing = wanted > 0
        hit = (one.detach().argmax(-1) == wanted) & thing
        right.append(hit.sum((1, 2)) / thing.sum().clamp(min=1))
    return torch.stack(losses).mean(), torch.stack(right, 1)
