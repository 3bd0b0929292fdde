"""A contact sheet: every frame that a model sees, with its number and the time that the model is told, as one picture.

Made to be read at its own size: captions are 14 pixels high, thumbnails have the same area whatever their aspect, and
a sheet is at most 1,600 pixels wide.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from vidpipe.video.draw import ROBOTO

THUMB_AREA, SMALL_AREA, MANY = 26_000, 14_000, 60
"""Pixels of a thumbnail: 215 x 121 at 16:9, 121 x 215 at 9:16; of more than so many frames 158 x 89."""
MOST_WIDTH, LEAST_WIDTH = 1600, 640
SHAPE = 1.4
"""Width of a sheet for its height, as far as its width allows."""
GAP, PAD = 10, 12
TITLE_SIZE, FONT_SIZE, SMALL_SIZE = 20, 14, 12
LEADING = 1.35
BACKGROUND, INK, QUIET, RULE = (255, 255, 255), (20, 20, 20), (95, 95, 95), (190, 190, 190)
SHADE = (200, 30, 60)
SHADE_WEIGHT = 0.55
"""How much of a dropped cell's colour is the shade's: what was dropped can still be seen."""


@dataclass(frozen=True)
class Tile:
    """One frame of the sheet."""

    pixels: npt.NDArray[np.uint8]
    """[height, width, 3]."""
    captions: Sequence[str] = ()
    """Lines under it."""
    kept: npt.NDArray[np.bool_] | None = None
    """[rows, columns] of cells; those that are False are shaded."""


@dataclass(frozen=True)
class Group:
    """Frames that stand side by side under one text."""

    text: str
    tiles: Sequence[Tile]


def draw_sheet(heading: Sequence[str], groups: Sequence[Group]) -> Image.Image:
    """The sheet of at least one tile, all of one size, in reading order under lines of heading, the first a title."""
    first = groups[0].tiles[0]
    tiles = [tile for group in groups for tile in group.tiles]
    thumb_wh = thumbnail_size(first.pixels.shape[1], first.pixels.shape[0], len(tiles))
    title, font, small = (ImageFont.truetype(str(ROBOTO), size) for size in (TITLE_SIZE, FONT_SIZE, SMALL_SIZE))
    span = max(len(group.tiles) for group in groups)
    lines = max(len(tile.captions) for tile in tiles)
    widest = max([small.getlength(line) for tile in tiles for line in tile.captions], default=0)
    texts = max(font.getlength(group.text) for group in groups)
    cell_w = max(thumb_wh[0], math.ceil(widest), math.ceil((texts - (span - 1) * GAP) / span)) + GAP
    cell_h = thumb_wh[1] + _height(font) + lines * _height(small) + GAP
    columns = span * columns_of_groups(len(groups), span * cell_w, cell_h)
    width = max(LEAST_WIDTH, 2 * PAD + columns * cell_w - GAP)
    written = list(_wrapped(heading, [title, *[font] * len(heading)], width - 2 * PAD))
    top = PAD + sum(_height(face) for _, face in written) + GAP
    rows = -(-len(groups) * span // columns)
    sheet = Image.new("RGB", (width, top + rows * cell_h + PAD - GAP), BACKGROUND)
    pen = ImageDraw.Draw(sheet)
    y = PAD
    for line, face in written:
        pen.text((PAD, y), line, font=face, fill=INK)
        y += _height(face)
    for number, group in enumerate(groups):
        row, column = divmod(number * span, columns)
        x, y = PAD + column * cell_w, top + row * cell_h
        for place, tile in enumerate(group.tiles):
            sheet.paste(thumbnail(tile, thumb_wh), (x + place * cell_w, y))
            for line_number, line in enumerate(tile.captions):
                at = (x + place * cell_w, y + thumb_wh[1] + _height(font) + line_number * _height(small))
                pen.text(at, line, font=small, fill=QUIET)
        text_y = y + thumb_wh[1] + 3
        pen.text((x, text_y), group.text, font=font, fill=INK)
        if len(group.tiles) > 1:  # a rule from the text to the last frame that it stands for
            begin, end = (
                x + math.ceil(font.getlength(group.text)) + 6,
                x + (len(group.tiles) - 1) * cell_w + thumb_wh[0],
            )
            if end > begin:
                middle = text_y + FONT_SIZE // 2 + 2
                pen.line([(begin, middle), (end, middle), (end, middle - 5)], fill=RULE, width=2)
    return sheet


def thumbnail_size(width: int, height: int, count: int) -> tuple[int, int]:
    """Width and height of a thumbnail of `count` frames of this size: the same aspect, the area of all thumbnails."""
    scale = math.sqrt((SMALL_AREA if count > MANY else THUMB_AREA) / (width * height))
    longest = min(1.0, (MOST_WIDTH - 2 * PAD) / 2 / (scale * max(width, height)))  # a strip
    return max(1, round(width * scale * longest)), max(1, round(height * scale * longest))


def columns_of_groups(groups: int, group_w: int, group_h: int) -> int:
    """Groups in a row: so many that the sheet gets the shape `SHAPE`, as far as its width allows."""
    most = max(1, (MOST_WIDTH - 2 * PAD + GAP) // group_w)
    return max(1, min(groups, most, round(math.sqrt(groups * group_h * SHAPE / group_w))))


def thumbnail(tile: Tile, size_wh: tuple[int, int]) -> Image.Image:
    """A tile's frame at the size (width, height), the cells that are dropped shaded."""
    picture = Image.fromarray(tile.pixels).resize(size_wh, Image.Resampling.BOX)
    if tile.kept is None:
        return picture
    dropped = Image.fromarray(np.where(tile.kept, 0, round(255 * SHADE_WEIGHT)).astype(np.uint8))
    return Image.composite(Image.new("RGB", size_wh, SHADE), picture, dropped.resize(size_wh, Image.Resampling.NEAREST))


def _height(font: ImageFont.FreeTypeFont) -> int:
    return round(font.size * LEADING)


def _wrapped(
    lines: Sequence[str], fonts: Sequence[ImageFont.FreeTypeFont], width: int
) -> Iterator[tuple[str, ImageFont.FreeTypeFont]]:
    """The lines, broken between words, and within one that is too long alone."""
    for line, font in zip(lines, fonts, strict=False):
        rest = line
        while font.getlength(rest) > width:
            fits = max(n for n in range(1, len(rest)) if n == 1 or font.getlength(rest[:n]) <= width)
            cut = rest.rfind(" ", 0, fits + 1)
            cut = cut if cut > 0 else fits
            yield rest[:cut], font
            rest = rest[cut:].lstrip()
        yield rest, font
