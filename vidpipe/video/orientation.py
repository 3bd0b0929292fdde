"""Turn and mirror pictures as the file's display matrix says."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Orientation:
    """How a stored picture becomes the shown one: mirrored left-right first, then turned clockwise."""

    rotation_deg: int = 0
    """Clockwise, one of 0, 90, 180, 270."""
    mirrored: bool = False

    @property
    def swaps_sides(self) -> bool:
        """Whether width and height change places."""
        return self.rotation_deg in (90, 270)

    def display_wh(self, stored_wh: tuple[int, int]) -> tuple[int, int]:
        """Return (width, height) of the shown picture."""
        width, height = stored_wh
        return (height, width) if self.swaps_sides else (width, height)

    def apply(self, picture: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return a view of `picture` [H, W, 3] in display orientation; copies nothing."""
        if self.mirrored:
            picture = picture[:, ::-1]
        return np.rot90(picture, k=-(self.rotation_deg // 90))


UPRIGHT = Orientation()


def orientation_of_matrix(matrix: bytes) -> tuple[Orientation, float]:
    """Read a 3x3 display matrix (nine native int32, 36 bytes) as FFmpeg carries it.

    Returns the nearest right-angle orientation and the clockwise rest in degrees
    (0 for real cameras). Layout: ISO/IEC 14496-12, track header `matrix`: the
    stored point (x, y) is shown at (a x + c y, b x + d y).
    """
    a, b, _, c, d = struct.unpack("=5i", matrix[:20])
    mirrored = a * d - b * c < 0
    if mirrored:  # take the mirroring out, so that the rest is a pure turn
        a, b = -a, -b
    angle_deg = math.degrees(math.atan2(b, a)) % 360 if a or b else 0.0
    quarter = round(angle_deg / 90) % 4
    rest_deg = (angle_deg - 90 * quarter + 180) % 360 - 180
    return Orientation(90 * quarter, mirrored), rest_deg


def orientation_of_frame(frame: Any) -> tuple[Orientation, float]:
    """Read the display matrix of a PyAV VideoFrame; upright when it has none."""
    matrix = frame.side_data.get("DISPLAYMATRIX")
    return (UPRIGHT, 0.0) if matrix is None else orientation_of_matrix(bytes(matrix))
