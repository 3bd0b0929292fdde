"""A stand-in for the encoder's embeddings, made of pixels alone, to preview what pruning would drop.

Real scores come from the encoder and only exist on the engine. Pixels tell still from
moving places as well as colours go; they know nothing of meaning.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

CELL_SIDE = 4
"""Points along each side of a token's cell that its embedding is made of."""


def pixel_embedding(frames: npt.NDArray[np.uint8], steps: int, rows: int, columns: int) -> npt.NDArray[np.float64]:
    """One vector of colours for each token, [steps * rows * columns, channels].

    Args:
        frames: [frames, height, width, 3]; the last one is repeated to fill the last step.
        steps: Temporal patches.
        rows: Tokens along the height.
        columns: Tokens along the width.
    """
    frames_a_step = -(-len(frames) // steps)
    down, across = _middles(frames.shape[1], rows * CELL_SIDE), _middles(frames.shape[2], columns * CELL_SIDE)
    missing = steps * frames_a_step - len(frames)
    sampled = frames[:, down][:, :, across].astype(np.float64) / 127.5 - 1.0
    sampled = np.concatenate([sampled, np.repeat(sampled[-1:], missing, axis=0)])
    cells = sampled.reshape(steps, frames_a_step, rows, CELL_SIDE, columns, CELL_SIDE, 3)
    embeddings: npt.NDArray[np.float64] = cells.transpose(0, 2, 4, 1, 3, 5, 6).reshape(steps * rows * columns, -1)
    return embeddings


def _middles(pixels: int, points: int) -> npt.NDArray[np.intp]:
    return ((np.arange(points) + 0.5) * pixels / points).astype(np.intp)
