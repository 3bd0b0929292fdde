"""Scenes drawn, many clips at a time, on whatever device torch has: the same pictures for training and for files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from tests.world.scene import COLOURS, SHAPES, VELOCITY
from tests.world.view import View

MOST_THINGS = 4
BORDER_PIXELS = 4
BORDER_LEVEL = 240.0
INNER = 0.44
"""Radius of a ring's hole over its own."""


@dataclass(frozen=True)
class Strokes:
    """What there is to draw of B clips of F frames, one row a clip (float64 on the way, so that edges in time hold)."""

    times_s: Tensor
    """[B, F]"""
    things: Tensor
    """[B, things, 12]: x, y, x per second, y per second, appears, leaves, radius, shape, red, green, blue, colour."""
    border: Tensor
    """[B, 2]: from when till when it is lit; never is (inf, inf)."""
    backdrop: Tensor
    """[B, 10]: red, green, blue, two slopes, three of the wave, noise, softness."""

    def to(self, device: torch.device | str) -> Strokes:
        """The same on another device."""
        return Strokes(*(getattr(self, field.name).to(device, non_blocking=True) for field in fields(self)))


def strokes(views: Sequence[View], frames: int) -> Strokes:
    """What there is to draw of `views`, each padded to `frames` by its last moment."""
    times_s = np.zeros((len(views), frames))
    things = np.zeros((len(views), MOST_THINGS, 12))
    things[:, :, 4:6] = math.inf
    things[:, :, 6] = 1.0
    border = np.full((len(views), 2), math.inf)
    backdrop = np.zeros((len(views), 10))
    for row, view in enumerate(views):
        scene, back = view.scene, view.scene.backdrop
        times_s[row] = [*view.times_s, *[view.times_s[-1]] * (frames - len(view.times_s))]
        for place, thing in enumerate(scene.things):
            along_x, along_y = VELOCITY[thing.direction]
            way = (thing.x, thing.y, along_x * thing.speed, along_y * thing.speed, thing.appears_s, thing.leaves_s)
            named = list(COLOURS).index(thing.colour)
            things[row, place] = [*way, thing.radius, SHAPES.index(thing.shape), *thing.rgb, named]
        if scene.border_s is not None:
            border[row] = scene.border_s
        backdrop[row] = [*back.rgb, *back.slope, *back.wave, back.noise, back.softness]
    return Strokes(*map(torch.from_numpy, (times_s, things, border, backdrop)))


def paint(what: Strokes, width: int, height: int) -> Tensor:
    """Pixels [B, F, 3, height, width], float32, whole numbers from 0 to 255."""
    x, y, shown = placed(what)
    lit = (what.border[:, :1] <= what.times_s) & (what.times_s < what.border[:, 1:])
    across, down = (torch.arange(side, device=x.device) + 0.5 for side in (width, height))
    return fill(x, y, shown, what.things[:, :, 6:11].float(), lit, what.backdrop.float(), across, down)


def placed(what: Strokes) -> tuple[Tensor, Tensor, Tensor]:
    """Middles of the things, x and y in pixels (float32), and whether they are shown, each [B, things, F]."""
    times_s = what.times_s[:, None, :]
    x, y, x_speed, y_speed, appears, leaves = (what.things[:, :, i, None] for i in range(6))
    shown = (appears <= times_s) & (times_s < leaves)
    since = torch.where(shown, times_s - appears, 0.0)
    return (x + x_speed * since).float(), (y + y_speed * since).float(), shown


def fill(
    x: Tensor, y: Tensor, shown: Tensor, look: Tensor, lit: Tensor, backdrop: Tensor, across: Tensor, down: Tensor
) -> Tensor:
    """`paint`'s pixels once all is worked out but them; apart, so that it can be compiled.

    Args:
        x: [B, things, F], pixels; `y` and `shown` likewise.
        look: [B, things, 5]: radius, shape, red, green, blue.
        lit: [B, F].
        backdrop: See `Strokes`.
        across: [width]: middles of the pixels; `down` [height].
    """
    clips, things, frames = x.shape
    width, height = across.shape[0], down.shape[0]
    across, down = across.view(1, 1, 1, width), down.view(1, 1, height, 1)
    u, v = across / width - 0.5, down / height - 0.5
    back = [value.view(clips, 1, 1, 1) for value in backdrop.unbind(1)]
    shade = back[3] * u + back[4] * v + back[5] * torch.sin(2 * math.pi * (back[6] * u + back[7] * v))
    noise = torch.rand(clips, frames, height, width, device=x.device) + torch.rand(
        clips, frames, height, width, device=x.device
    )
    shade = shade + (noise - 1) * 2.4 * back[8]  # the sum of two uniform numbers has a deviation of 0.41
    channels = [shade + back[channel] for channel in range(3)]
    for place in range(things):
        radius, kind, *rgb = (value.view(clips, 1, 1, 1) for value in look[:, place].unbind(1))
        away_x = across - x[:, place].view(clips, frames, 1, 1)
        away_y = down - y[:, place].view(clips, frames, 1, 1)
        inside = torch.sigmoid(-1.5 * distance(away_x, away_y, radius, kind) / back[9])
        inside = inside * shown[:, place].view(clips, frames, 1, 1)
        channels = [old + inside * (new - old) for old, new in zip(channels, rgb, strict=True)]
    edge = torch.minimum(torch.minimum(across, width - across), torch.minimum(down, height - down)) < BORDER_PIXELS
    border = edge & lit.view(clips, frames, 1, 1)
    channels = [torch.where(border, BORDER_LEVEL, channel) for channel in channels]
    return torch.stack(channels, dim=2).clamp(0, 255).round()


def distance(x: Tensor, y: Tensor, radius: Tensor, kind: Tensor) -> Tensor:
    """Signed distance in pixels to the outline of the shape (place in `SHAPES`) around the origin; y points down."""
    width, height = x.abs(), y.abs()
    length = torch.sqrt(x * x + y * y)
    circle = length - radius
    square = torch.maximum(width, height) - 0.88 * radius
    triangle = torch.maximum(y - 0.8 * radius, 0.88 * width - 0.48 * (y + radius))
    arm = 0.36 * radius
    cross = torch.minimum(torch.maximum(width - radius, height - arm), torch.maximum(width - arm, height - radius))
    ring = (length - (1 + INNER) / 2 * radius).abs() - (1 - INNER) / 2 * radius
    return torch.where(
        kind == 0,
        circle,
        torch.where(kind == 1, square, torch.where(kind == 2, triangle, torch.where(kind == 3, cross, ring))),
    )


def compress(clip: Tensor, step: Tensor) -> Tensor:
    """What a codec leaves of a clip: colours at half the resolution, 8x8 cosine transforms in steps of `step`.

    Stands in for JPEG and H.264 where thousands of clips a second are wanted.

    Args:
        clip: [B, F, 3, height, width], 0 to 255; sides are multiples of 16.
        step: [B], levels; 0 leaves the clip as it is, 30 is a bad picture.
    """
    red, green, blue = clip.unbind(2)
    luma = 0.299 * red + 0.587 * green + 0.114 * blue
    chroma = torch.stack([0.564 * (blue - luma), 0.713 * (red - luma)], dim=2)
    half = torch.nn.functional.avg_pool2d(chroma.flatten(0, 2), 2).view(*chroma.shape[:3], clip.shape[-2] // 2, -1)
    step = step.view(-1, 1, 1, 1)
    luma = _quantise(luma, step)
    half = _quantise(half.flatten(1, 2), step).view_as(half)
    to_blue, to_red = half.repeat_interleave(2, -1).repeat_interleave(2, -2).unbind(2)
    blue, red = luma + to_blue / 0.564, luma + to_red / 0.713
    green = (luma - 0.299 * red - 0.114 * blue) / 0.587
    return torch.stack([red, green, blue], dim=2).clamp(0, 255).round()


def _quantise(plane: Tensor, step: Tensor) -> Tensor:
    """Plane [B, F, height, width] through rounded 8x8 cosine transforms; high frequencies in wider steps."""
    place = torch.arange(8, device=plane.device, dtype=torch.float32)
    basis = torch.cos(math.pi * (2 * place[None] + 1) * place[:, None] / 16) / 2
    basis[0] /= math.sqrt(2)
    both = torch.kron(basis, basis)  # one large product: a million of 8x8 are slow on a GPU
    clips, frames, height, width = plane.shape
    blocks = plane.view(clips, frames, height // 8, 8, width // 8, 8).transpose(3, 4)
    waves = blocks.reshape(clips, -1, 64) @ both.T
    wide = (step.view(-1, 1, 1) * (1 + (place[:, None] + place).flatten() / 6)).clamp(min=1e-3)
    back = (torch.round(waves / wide) * wide) @ both
    return back.view(blocks.shape).transpose(3, 4).reshape(plane.shape)
