"""What lies under each vision token, and heads that learn to say it: a dense signal, in training only.

A few answer tokens a clip say little about what a token shows; here every token of every pair says it. The heads are no
part of the model, so nothing of them is exported.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from tests.world.pictures import Strokes, distance, placed
from tests.world.scene import COLOURS, SHAPES, SIZES_WH, VELOCITY

POINTS = 8
"""Points along each side of a vision token's cell at which it is looked at."""
COVERED, BARE = 0.03, 0.005
"""Share of a cell (mean of the step's frames) from which it shows a thing, and below which it shows none."""
IGNORED = -100
RADII = (12.0, 15.0, 18.0, 21.0)
"""Pixels between classes of size."""
QUALITIES = {
    "colour": 1 + len(COLOURS),
    "shape": 1 + len(SHAPES),
    "size": 2 + len(RADII),
    "motion": 1 + len(VELOCITY),
    "news": 3,
    "row": 1 + max(height for _, height in SIZES_WH) // 28,
    "column": 1 + max(width for width, _ in SIZES_WH) // 28,
}
"""What is said of a token -> number of classes; class 0 is background, of `news` 1 the first step with the thing."""
BACKGROUND = 0.15
"""Weight of a background token; most tokens are."""


def covered(what: Strokes, width: int, height: int, grid: tuple[int, int], frames_a_step: int) -> Tensor:
    """Share of each vision token's cell that each thing covers, mean of the step's frames: [B, things, steps, tokens].

    Args:
        what: The clips.
        width: Of a picture in pixels.
        height: Likewise.
        grid: Rows and columns of vision tokens.
        frames_a_step: Frames that a token shows.
    """
    x, y, shown = placed(what)
    clips, things, frames = x.shape
    rows, columns = grid
    across, down = (
        (torch.arange(cells * POINTS, device=x.device) + 0.5) * (side / (cells * POINTS))
        for side, cells in ((width, columns), (height, rows))
    )
    radius, shape = (what.things[:, :, i].float().view(clips, things, 1, 1, 1) for i in (6, 7))
    inside = distance(across - x[..., None, None], down[:, None] - y[..., None, None], radius, shape) < 0
    inside = inside & shown[..., None, None]
    cut = inside.view(clips, things, frames // frames_a_step, frames_a_step, rows, POINTS, columns, POINTS)
    return cut.float().mean((3, 5, 7)).flatten(3)


def labels(
    what: Strokes,
    width: int,
    height: int,
    grid: tuple[int, int],
    steps: Tensor,
    qualities: Sequence[str],
    frames_a_step: int,
) -> Tensor:
    """Class of each vision token, [qualities, B, steps x tokens].

    `IGNORED` stands where a thing covers a sliver only, and behind the last of a clip's `steps` [B].

    Args:
        what: The clips.
        width: Of a picture in pixels.
        height: Likewise.
        grid: Rows and columns of vision tokens.
        steps: [B]: how many steps each clip has.
        qualities: Of `QUALITIES`.
        frames_a_step: Frames that a token shows.
    """
    share = covered(what, width, height, grid, frames_a_step)
    most, which = share.max(1)
    each = torch.arange(share.shape[2], device=share.device)
    shown = placed(what)[2].unflatten(2, (-1, frames_a_step)).any(3)
    first = torch.where(shown, each, len(each)).amin(2)
    x_way, y_way = what.things[:, :, 2].sign(), what.things[:, :, 3].sign()
    ways = torch.stack([(x_way == x) & (y_way == y) for x, y in VELOCITY.values()]).long().argmax(0)
    cell = torch.arange(share.shape[3], device=share.device)
    size = torch.stack([what.things[:, :, 6] > edge for edge in RADII]).long().sum(0)
    clip = torch.arange(len(which), device=which.device).view(-1, 1, 1)
    by_thing = {
        "colour": what.things[:, :, 11].long(),
        "shape": what.things[:, :, 7].long(),
        "size": size,
        "motion": ways,
    }
    by_token = {name: value[clip, which] + 1 for name, value in by_thing.items()}
    by_token["news"] = torch.where(first[:, :, None] == each, 1, 2)[clip, which, each[:, None]]
    if frames_a_step == 1:  # nothing tells how a thing moves that has only just come
        by_token["motion"] = by_token["motion"].masked_fill(by_token["news"] == 1, IGNORED)
    by_token |= {"row": (cell // grid[1] + 1).expand_as(which), "column": (cell % grid[1] + 1).expand_as(which)}
    found = torch.stack([by_token[name] for name in qualities])
    found = torch.where(most >= COVERED, found, torch.where(most < BARE, 0, IGNORED))
    return found.masked_fill((each >= steps[:, None])[..., None], IGNORED).flatten(2)


class Heads(torch.nn.Module):
    """A linear layer for each place in the network that is listened to: the encoder's levels, then text layers.

    Args:
        levels: Of the encoder.
        layers: Of the text model.
        hidden: Channels of both.
        qualities: Of `QUALITIES`: what they say.
        later: Those of them that the encoder, which sees one step, cannot know.
    """

    def __init__(
        self, levels: int, layers: int, hidden: int, qualities: Sequence[str], later: Collection[str] = ()
    ) -> None:
        super().__init__()
        self.levels, self.qualities, self.later = levels, tuple(qualities), frozenset(later)
        classes = sum(QUALITIES[name] for name in qualities)
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
        levels = (slice(self.levels), target, self.later), (slice(self.levels, len(heard)), spread, frozenset[str]())
        for places, wanted, unasked in levels:
            said = [linear(states.float()) for linear, states in zip(self.linears[places], heard[places], strict=False)]
            if said:
                loss, hits = self._judged(torch.stack(said), wanted, unasked)
                losses = losses + loss * len(said) / len(heard)
                right.append(hits)
        return losses, torch.cat(right)

    def _judged(self, logits: Tensor, target: Tensor, unasked: Collection[str]) -> tuple[Tensor, Tensor]:
        """Mean cross-entropy of logits [places, B, N, classes of all qualities]; shares right [places, qualities]."""
        losses, right = [], []
        sizes = [QUALITIES[name] for name in self.qualities]
        for name, one, wanted in zip(self.qualities, logits.split(sizes, -1), target, strict=True):
            weight = torch.ones(one.shape[-1], device=one.device)
            weight[0] = BACKGROUND
            if name not in unasked:
                everywhere = wanted.expand(len(one), -1, -1).flatten()
                losses.append(F.cross_entropy(one.flatten(0, 2), everywhere, weight, ignore_index=IGNORED))
            thing = wanted > 0
            hit = (one.detach().argmax(-1) == wanted) & thing
            right.append(hit.sum((1, 2)) / thing.sum().clamp(min=1))
        return torch.stack(losses).mean(), torch.stack(right, 1)
