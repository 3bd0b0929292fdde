"""Texts on frames are, to the pixel, those of the reference processor in transformers."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import ImageFont

from vidpipe.engine import torchvision_on_cpu
from vidpipe.models.ernie45_vl import drawn_time
from vidpipe.video.draw import ROBOTO, draw_corner_texts


def noise(frames: int, height: int, width: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (frames, height, width, 3), np.uint8)


@pytest.mark.upstream
@pytest.mark.parametrize(("height", "width"), [(240, 320), (1080, 1920), (101, 57), (64, 48), (360, 33), (12, 500)])
def test_the_pixels_are_those_of_transformers(height: int, width: int) -> None:
    torchvision_on_cpu.install()
    torch = pytest.importorskip("torch")
    reference = pytest.importorskip("transformers.models.ernie4_5_vl_moe.video_processing_ernie4_5_vl_moe")
    draw = reference.Ernie4_5_VLMoeVideoProcessor._render_image_with_timestamp
    times_s = [0.0, 1.25, 3723.456, 59.996]
    frames = noise(len(times_s), height, width)
    expected = [
        draw(SimpleNamespace(font=str(ROBOTO)), torch.from_numpy(frame).permute(2, 0, 1), drawn_time(time_s))
        for frame, time_s in zip(frames, times_s, strict=True)
    ]
    draw_corner_texts(frames, [drawn_time(time_s) for time_s in times_s])
    assert np.array_equal(frames, torch.stack(expected).permute(0, 2, 3, 1).numpy())


def test_black_on_white_in_the_corner_only() -> None:
    frames = np.full((2, 200, 400, 3), 128, np.uint8)
    draw_corner_texts(frames, ["time: 00:00:01.20", "time: 00:00:01.30"])
    changed = (frames != 128).any(axis=(0, 3))
    rows, columns = np.flatnonzero(changed.any(axis=1)), np.flatnonzero(changed.any(axis=0))
    assert rows[0] < 5 and rows[-1] < 28 and columns[0] < 5 and columns[-1] < 200
    drawn = frames[0][:28, :200]
    assert {0, 255} <= set(np.unique(drawn).tolist())
    assert not np.array_equal(frames[0], frames[1])


def test_another_font_draws_otherwise(tmp_path: Path) -> None:
    other = tmp_path / "other.ttf"
    other.write_bytes(ImageFont.load_default(10).font_bytes)  # type: ignore[union-attr]
    frames, same = noise(1, 120, 160), noise(1, 120, 160)
    draw_corner_texts(frames, ["time: 00:00:00.00"])
    draw_corner_texts(same, ["time: 00:00:00.00"], other)
    assert not np.array_equal(frames, same)


def test_frames_too_small_to_read_are_still_shown() -> None:
    frames = noise(1, 8, 2048)
    draw_corner_texts(frames, ["time: 00:00:00.00"])
