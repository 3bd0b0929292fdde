from __future__ import annotations

import itertools
import struct
from pathlib import Path

import numpy as np
import pytest

from tests.hard_inputs import blocks
from tests.video.clips import set_display_matrix, write_blocks
from vidpipe.video.decode import decode_frames
from vidpipe.video.orientation import Orientation, orientation_of_matrix
from vidpipe.video.probe import probe

ALL = [Orientation(turn, mirrored) for turn, mirrored in itertools.product((0, 90, 180, 270), (False, True))]


def matrix_of(orientation: Orientation) -> list[int]:
    """The display matrix for `orientation`, from where it moves the unit steps right and down."""
    right, down = (-1 if orientation.mirrored else 1, 0), (0, 1)
    for _ in range(orientation.rotation_deg // 90):  # clockwise: right goes down, down goes left
        right, down = ((-y, x) for x, y in (right, down))
    return [right[0], right[1], 0, down[0], down[1], 0, 0, 0, 1]


@pytest.mark.parametrize("orientation", ALL)
def test_the_matrix_is_read(orientation: Orientation) -> None:
    matrix = struct.pack("=9i", *(65536 * m for m in matrix_of(orientation)))
    found, rest_deg = orientation_of_matrix(matrix)
    assert found == orientation
    assert rest_deg == pytest.approx(0)


def test_a_slanted_matrix_leaves_a_rest() -> None:
    slanted = [int(65536 * x) for x in (np.cos(0.2), np.sin(0.2), 0, -np.sin(0.2), np.cos(0.2), 0, 0, 0, 1)]
    found, rest_deg = orientation_of_matrix(struct.pack("=9i", *slanted))
    assert found == Orientation()
    assert rest_deg == pytest.approx(np.degrees(0.2), abs=0.01)


@pytest.mark.parametrize("orientation", ALL)
def test_pictures_come_out_upright(orientation: Orientation, tmp_path: Path) -> None:
    clip = write_blocks(tmp_path / "clip.mp4", numbers=range(5))
    set_display_matrix(clip, matrix_of(orientation))
    stored = decode_frames(clip, [3]).pixels[0]
    # What is shown is the upright picture turned and mirrored; undo that and the number must be there.
    undone = np.rot90(stored, orientation.rotation_deg // 90)
    assert blocks.read(undone[:, ::-1] if orientation.mirrored else undone) == 3
    found = probe(clip)
    assert (found.rotation_deg, found.mirrored) == (orientation.rotation_deg, orientation.mirrored)
    assert found.display_wh == stored.shape[1::-1]
