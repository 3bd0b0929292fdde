"""A contact sheet: every frame that a model sees, with its number and time, as one picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

THUMB_WIDTH = 200
GAP = 8
LINE = 16
FONT_SIZE = 12
COLUMNS = 8
BACKGROUND, INK, QUIET = (255, 255, 255), (20, 20, 20), (110, 110, 110)
SHADE = (200, 30, 60)
SHADE_WEIGHT = 0.65
"""How much of a dropped cell's colour is the shade's."""


@dataclass(frozen=True)
class Tile:
    """One frame of the sheet."""

    pixels: npt.NDArray[np.uint8]
    """[height, width, 3]."""
    captions: Sequence[str]
    """Lines under it."""
    kept: npt.NDArray[np.bool_] | None = None
    """[rows, columns] of cells; those that are False are shaded."""


def draw_sheet(heading: Sequence[str], tiles: Sequence[Tile]) -> Image.Image:
    """The sheet of at least one tile, all of one size, in reading order under lines of heading."""
    height, width = tiles[0].pixels.shape[:2]
    thumb_h = max(1, round(THUMB_WIDTH * height / width))
    columns = min(COLUMNS, math.ceil(math.sqrt(len(tiles) * 1.5)))
    lines = max(len(tile.captions) for tile in tiles)
    cell_w, cell_h = THUMB_WIDTH + GAP, thumb_h + lines * LINE + GAP
    font = ImageFont.load_default(FONT_SIZE)
    heading_w = max((math.ceil(font.getlength(line)) for line in heading), default=0) + 2 * GAP
    top = GAP + len(heading) * LINE + GAP
    rows = -(-len(tiles) // columns)
    sheet = Image.new("RGB", (max(GAP + columns * cell_w, heading_w), top + rows * cell_h), BACKGROUND)
    pen = ImageDraw.Draw(sheet)
    for number, line in enumerate(heading):
        pen.text((GAP, GAP + number * LINE), line, font=font, fill=INK)
    for number, tile in enumerate(tiles):
        x, y = GAP + number % columns * cell_w, top + number // columns * cell_h
        sheet.paste(thumbnail(tile, (THUMB_WIDTH, thumb_h)), (x, y))
        for place, line in enumerate(tile.captions):
            pen.text((x, y + thumb_h + 2 + place * LINE), line, font=font, fill=INK if place == 0 else QUIET)
    return sheet


def thumbnail(tile: Tile, size_wh: tuple[int, int]) -> Image.Image:
    """A tile's frame at the size (width, height), the cells that are dropped shaded."""
    picture = Image.fromarray(tile.pixels).resize(size_wh, Image.Resampling.BOX)
    if tile.kept is None:
        return picture
    dropped = Image.fromarray(np.where(tile.kept, 0, round(255 * SHADE_WEIGHT)).astype(np.uint8))
    return Image.composite(Image.new("RGB", size_wh, SHADE), picture, dropped.resize(size_wh, Image.Resampling.NEAREST))
