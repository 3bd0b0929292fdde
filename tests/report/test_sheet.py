import numpy as np
import pytest

from vidpipe.report.sheet import SHADE, THUMB_WIDTH, Tile, draw_sheet

GREY = np.full((48, 64, 3), 100, np.uint8)


@pytest.mark.parametrize("count", [1, 2, 9, 100])
def test_every_frame_has_its_place(count: int) -> None:
    colours = [np.full((48, 64, 3), 2 * number, np.uint8) for number in range(count)]
    sheet = np.asarray(draw_sheet(["a heading"], [Tile(pixels, ["frame", "time"]) for pixels in colours]))
    for number in range(count):
        assert (sheet == 2 * number).all(axis=-1).sum() >= THUMB_WIDTH * 100, number


def test_dropped_cells_are_shaded() -> None:
    kept = np.array([[True, False], [True, True]])
    plain = np.asarray(draw_sheet([], [Tile(GREY, [])])).astype(int)
    shaded = np.asarray(draw_sheet([], [Tile(GREY, [], kept)])).astype(int)
    changed = (plain != shaded).any(axis=-1)
    picture = (plain == 100).all(axis=-1)
    assert changed.sum() == pytest.approx(picture.sum() / 4, rel=0.02)
    assert abs(shaded[changed][0] - np.array(SHADE)).sum() < abs(shaded[changed][0] - 100).sum()


def test_a_long_heading_is_not_cut() -> None:
    assert draw_sheet(["word " * 200], [Tile(GREY, [])]).width > 5000
