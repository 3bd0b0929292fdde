"""Texts drawn into the upper left corner of frames, for models that read times there.

Black with a white outline; a tenth of the frame's shorter side high, the outline a tenth of
that. Source: ERNIE-4.5-VL's `processing_ernie4_5_vl.py` (`render_single_image_with_timestamp`)
and transformers' `Ernie4_5_VLMoeVideoProcessor._render_image_with_timestamp`, which draw the
same; to the pixel what these draw, with the same font (tested).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from vidpipe.video.container import PathLike

ROBOTO = Path(__file__).with_name("fonts") / "Roboto-Regular.ttf"
"""The font that the model was trained with, by name; version 2.138, Apache License 2.0."""
SIZE_FACTOR = 0.1
BLACK, WHITE = (0, 0, 0), (255, 255, 255)


def draw_corner_texts(pixels: npt.NDArray[np.uint8], texts: Sequence[str], font: PathLike = ROBOTO) -> None:
    """Draw a text on each frame, in place, before anything resizes it.

    Upstream fails on frames of fewer than 10 pixels; here the text is then one pixel high, as it is
    up to 19 pixels.

    Args:
        pixels: uint8 [frames, height, width, 3], RGB.
        texts: One for each frame.
        font: TrueType file.
    """
    from PIL import Image, ImageDraw, ImageFont

    height, width = pixels.shape[1:3]
    size = max(1, int(min(width, height) * SIZE_FACTOR))
    outline = int(size * SIZE_FACTOR)
    face = ImageFont.truetype(str(font), size)
    for frame, text in zip(pixels, texts, strict=True):
        # Only the corner that the text reaches goes through Pillow, which copies what it draws on.
        _, _, right, bottom = face.getbbox(text, stroke_width=outline)
        corner = frame[: math.ceil(bottom) + 1, : math.ceil(right) + 1]
        image = Image.fromarray(corner)
        ImageDraw.Draw(image).text((0, 0), text, font=face, fill=BLACK, stroke_width=outline, stroke_fill=WHITE)
        corner[:] = np.asarray(image)
