import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageFont

from vidpipe.report.sheet import (
    FONT_SIZE,
    MOST_WIDTH,
    SHADE,
    Group,
    Tile,
    columns_of_groups,
    draw_sheet,
    thumbnail_size,
)
from vidpipe.video.draw import ROBOTO

GREY = np.full((48, 64, 3), 100, np.uint8)


def alone(*tiles: Tile) -> list[Group]:
    return [Group("time", [tile]) for tile in tiles]


@pytest.mark.parametrize(("count", "span"), [(1, 1), (2, 2), (9, 1), (100, 1), (100, 2)])
def test_every_frame_has_its_place(count: int, span: int) -> None:
    colours = np.array([(2 * number, 255, 2 * number) for number in range(count)], np.uint8)
    tiles = [Tile(np.full((48, 64, 3), colour, np.uint8), ["frame"]) for colour in colours]
    groups = [Group("time", tiles[first : first + span]) for first in range(0, count, span)]
    sheet = np.asarray(draw_sheet(["a heading"], groups))
    width, height = thumbnail_size(64, 48, count)
    corners = []
    for colour in colours:
        rows, columns = np.where((sheet == colour).all(axis=-1))
        assert len(rows) == width * height == (np.ptp(rows) + 1) * (np.ptp(columns) + 1)
        corners.append((rows.min(), columns.min()))
    assert corners == sorted(corners), "in reading order"
    for first in range(0, count, span):
        assert len({row for row, _ in corners[first : first + span]}) == 1, "frames of one text stand side by side"


@given(st.integers(16, 4000), st.integers(16, 4000), st.integers(1, 800))
def test_thumbnails_keep_their_aspect_and_sheets_their_width(width: int, height: int, count: int) -> None:
    thumb_w, thumb_h = thumbnail_size(width, height, count)
    ratio = (thumb_w / thumb_h) / (width / height)
    assert abs(math.log(ratio)) < math.log1p(1 / min(thumb_w, thumb_h)), "but for the last pixel"
    columns = columns_of_groups(count, thumb_w + 10, thumb_h + 40)
    assert 1 <= columns <= count and (columns == 1 or columns * (thumb_w + 10) <= MOST_WIDTH)


def test_wide_and_tall_frames_make_sheets_of_a_like_shape() -> None:
    for width, height in ((320, 136), (160, 160), (90, 160)):
        sheet = draw_sheet(["x"], alone(*[Tile(np.zeros((height, width, 3), np.uint8), ["frame 1 at 0.000 s"])] * 40))
        assert 0.7 < sheet.width / sheet.height < 2.2 and sheet.width <= MOST_WIDTH


def test_dropped_cells_are_shaded() -> None:
    kept = np.array([[True, False], [True, True]])
    plain = np.asarray(draw_sheet([], alone(Tile(GREY)))).astype(int)
    shaded = np.asarray(draw_sheet([], alone(Tile(GREY, (), kept)))).astype(int)
    changed = (plain != shaded).any(axis=-1)
    picture = (plain == 100).all(axis=-1)
    assert changed.sum() == pytest.approx(picture.sum() / 4, rel=0.02)
    assert abs(shaded[changed][0] - np.array(SHADE)).sum() < abs(shaded[changed][0] - 100).sum()


@pytest.mark.parametrize("words", ["word " * 200, "w" * 900])
def test_a_long_heading_is_broken_not_cut(words: str) -> None:
    plain, long = draw_sheet(["title", "x"], alone(Tile(GREY))), draw_sheet(["title", words], alone(Tile(GREY)))
    assert long.width == plain.width, "it is broken"
    more_lines = (long.height - plain.height) / round(FONT_SIZE * 1.35)
    assert more_lines + 1 >= ImageFont.truetype(str(ROBOTO), FONT_SIZE).getlength(words.strip()) / plain.width


def test_captions_and_texts_do_not_run_into_each_other() -> None:
    tile = Tile(GREY, ["frame 123456 at 123456.789 s, and more than the picture is wide"])
    sheet: Image.Image = draw_sheet([], [Group("a text of its own, which is long", [tile, tile])] * 4)
    ink = (np.asarray(sheet) < 200).any(axis=-1)
    width = thumbnail_size(64, 48, 8)[0]
    gaps = ~ink.any(axis=0)
    assert gaps[12 + width : ink.shape[1] - 12].sum() >= 8, "there is white between the columns of text"
