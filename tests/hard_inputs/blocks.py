"""Pictures that carry a number: 4 x 4 cells of grey, so that a test can tell which frame it was given.

The corners are white, black, black and middle grey (which tells upright from
turned or mirrored); the other twelve cells, row by row, hold ten bits of the
number, lowest first, then their parity and its opposite.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

WHITE, MIDDLE, BLACK = 230, 128, 25
_CORNERS = {0: WHITE, 3: BLACK, 12: BLACK, 15: MIDDLE}
_BIT_CELLS = [cell for cell in range(16) if cell not in _CORNERS]


def draw(number: int, width: int, height: int) -> npt.NDArray[np.uint8]:
    """A picture, uint8 [height, width, 3], that carries `number` (0 to 1023)."""
    bits = [number >> place & 1 for place in range(10)]
    bits += [sum(bits) % 2, 1 - sum(bits) % 2]
    cells = np.zeros(16, np.uint8)
    cells[list(_CORNERS)] = list(_CORNERS.values())
    cells[_BIT_CELLS] = [WHITE if bit else BLACK for bit in bits]
    rows = (np.arange(height) * 4 // height).clip(max=3)
    columns = (np.arange(width) * 4 // width).clip(max=3)
    grey = cells.reshape(4, 4)[rows[:, None], columns[None, :]]
    return np.repeat(grey[:, :, None], 3, axis=2)


def read(picture: npt.NDArray[np.uint8]) -> int | None:
    """The number that `picture` carries; None when it is turned, mirrored or spoiled."""
    grey = picture.astype(np.float64).mean(axis=2)
    levels = np.array([_middle(cell) for row in np.array_split(grey, 4) for cell in np.array_split(row, 4, axis=1)])
    white, right, left, corner = levels[[0, 3, 12, 15]]
    upright = white > 170 and right < 90 and left < 90 and 60 < corner < min(215, white - 20)
    bits = (levels[_BIT_CELLS] > MIDDLE).astype(int)
    if not upright or bits[:10].sum() % 2 != bits[10] or bits[10] == bits[11]:
        return None
    return int((bits[:10] << np.arange(10)).sum())


def _middle(cell: npt.NDArray[np.float64]) -> float:
    """The mean of the inner half: borders are blurred by coding."""
    height, width = cell.shape
    inner = cell[height // 4 : height - height // 4, width // 4 : width - width // 4]
    return float(inner.mean())
