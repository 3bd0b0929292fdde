"""What a model saw, on one page: the frames in a grid, index and time under each."""

from __future__ import annotations

import math

import cv2
from PIL import Image, ImageDraw, ImageFont

from vidpipe.video.decode import Frames

_CELL_WIDTH = 240
_LABEL_HEIGHT = 18
_GAP = 4
_MAX_COLUMNS = 8
_PAPER, _INK = "white", "black"


def contact_sheet(frames: Frames) -> Image.Image:
    """Draw `frames` row by row, shrunk to 240 pixels in width (never enlarged), in their order."""
    count, height, width = frames.pixels.shape[:3]
    cell_width = max(min(width, _CELL_WIDTH), 1)
    cell_height = max(round(height * cell_width / width), 1)
    columns = min(_MAX_COLUMNS, math.ceil(math.sqrt(count)))
    # A narrow picture must not cut its label.
    step_x, step_y = max(cell_width, 110) + _GAP, cell_height + _LABEL_HEIGHT + _GAP
    rows = math.ceil(count / columns)
    sheet = Image.new("RGB", (columns * step_x + _GAP, rows * step_y + _GAP), _PAPER)
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(13)
    for place in range(count):
        x, y = _GAP + place % columns * step_x, _GAP + place // columns * step_y
        cell = cv2.resize(frames.pixels[place], (cell_width, cell_height), interpolation=cv2.INTER_AREA)
        sheet.paste(Image.fromarray(cell), (x, y))
        label = f"#{frames.indices[place]}  {frames.times_s[place]:.3f} s"
        draw.text((x, y + cell_height + 1), label, fill=_INK, font=font)
    return sheet
