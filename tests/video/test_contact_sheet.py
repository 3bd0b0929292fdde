from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.hard_inputs import blocks
from tests.video.clips import write_blocks
from vidpipe.video.contact_sheet import contact_sheet
from vidpipe.video.decode import Frames, decode_frames


def test_every_frame_is_there_in_order_with_a_label(tmp_path: Path) -> None:
    frames = decode_frames(write_blocks(tmp_path / "clip.mp4"), [0, 7, 19, 23, 29])
    sheet = np.asarray(contact_sheet(frames))
    step_x, step_y = 128 + 4, 96 + 18 + 4
    for place, index in enumerate([0, 7, 19, 23, 29]):
        x, y = 4 + place % 3 * step_x, 4 + place // 3 * step_y
        assert blocks.read(sheet[y : y + 96, x : x + 128]) == index
        label = sheet[y + 96 : y + 96 + 18, x : x + 128]
        assert label.min() < 100 < label.max()


@pytest.mark.parametrize("wh", [(1920, 1080), (8, 2048), (2048, 8), (4, 4)])
def test_any_shape_fits(wh: tuple[int, int]) -> None:
    pixels = np.zeros((3, wh[1], wh[0], 3), np.uint8)
    sheet = contact_sheet(Frames(pixels, np.arange(3), np.arange(3.0), 0, ()))
    assert min(sheet.size) > 20
    assert sheet.size[0] <= 2 * 244 + 4
