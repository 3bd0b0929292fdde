"""Notice pictures without content: decoders report success for black and for unwritten ones."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_SAME_LEVEL = 3
_BLACK_LEVEL = 20
_SAMPLES_PER_FRAME = 4096


def flat_note(pixels: npt.NDArray[np.uint8]) -> str | None:
    """Return a note when every frame of `pixels`, [T, H, W, 3], is one flat colour; None otherwise.

    A clip may truly be black, so this is a note and no error. Green is what a buffer
    of zeros, which no decoder has written to, looks like as YUV.
    """
    colours: list[npt.NDArray[np.uint8]] = []
    for frame in pixels:
        flat = frame.reshape(-1, 3)
        sample = flat[:: max(1, len(flat) // _SAMPLES_PER_FRAME)]
        low, high = sample.min(0), sample.max(0)
        if int((high - low).max()) > _SAME_LEVEL:
            return None
        colours.append(low)
    red, green, blue = (int(level) for level in np.max(colours, axis=0))
    if max(red, green, blue) <= _BLACK_LEVEL:
        return f"black: all {len(pixels)} frames are black"
    if red <= _BLACK_LEVEL and blue <= _BLACK_LEVEL:
        return f"unwritten: all {len(pixels)} frames are the green of an empty decoder buffer"
    return f"flat: all {len(pixels)} frames are one colour, RGB {red} {green} {blue}"
