"""Media of which nothing is kept; everything else is held by vectors from upstream (`tests/parity`)."""

import numpy as np

from vidpipe.models.positions import Block, delta, grid_positions, positions_of


def test_an_empty_grid_takes_no_position() -> None:
    assert grid_positions([(1, 2, 2), (0, 2, 2), (1, 1, 1)])[:, -1].tolist() == [2, 2, 2]


def test_an_empty_block_takes_no_position() -> None:
    local = grid_positions([(1, 2, 2)])
    blocks = [Block(3, 4, local), Block(9, 0, np.empty((3, 0), np.int64))]
    positions = positions_of(blocks, 11)
    assert positions[0].tolist() == [0, 1, 2, 3, 3, 3, 3, 5, 6, 7, 8] and delta(positions, 11) == -2
