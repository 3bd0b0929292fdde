"""Colours are OpenCV's, to the bit, for every kind of file that OpenCV reads."""

from __future__ import annotations

from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from tests.hard_inputs import blocks
from tests.video.clips import write_blocks
from vidpipe.video.decode import decode_frames

MATRIX = {"bt601": 6, "bt709": 1, "bt2020": 9}


def colourful(path: Path, pix_fmt: str, matrix: str, full_range: bool) -> Path:
    rng = np.random.default_rng(7)
    picture = cv2.resize(rng.integers(0, 256, (12, 17, 3), np.uint8), (170, 122), interpolation=cv2.INTER_CUBIC)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=10, options={"crf": "8"})
        stream.width, stream.height, stream.pix_fmt = 170, 122, pix_fmt
        stream.codec_context.colorspace = MATRIX[matrix]
        stream.codec_context.color_range = 2 if full_range else 1
        for shift in range(4):
            frame = av.VideoFrame.from_ndarray(np.roll(picture, 5 * shift, axis=1), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


@pytest.mark.parametrize("full_range", [False, True])
@pytest.mark.parametrize("matrix", MATRIX)
@pytest.mark.parametrize("pix_fmt", ["yuv420p", "yuv444p", "yuv420p10le"])
def test_colours_are_opencvs(pix_fmt: str, matrix: str, full_range: bool, tmp_path: Path) -> None:
    clip = colourful(tmp_path / "clip.mp4", pix_fmt, matrix, full_range)
    ours = decode_frames(clip, range(4)).pixels
    capture = cv2.VideoCapture(str(clip), cv2.CAP_FFMPEG)
    theirs = np.stack([cv2.cvtColor(capture.read()[1], cv2.COLOR_BGR2RGB) for _ in range(4)])
    assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("size_wh", [(64, 48), (32, 64), (200, 150)])
def test_a_target_size_is_honoured(size_wh: tuple[int, int], tmp_path: Path) -> None:
    clip = write_blocks(tmp_path / "clip.mp4", numbers=range(6))
    frames = decode_frames(clip, [1, 5], size_wh=size_wh)
    assert frames.pixels.shape == (2, size_wh[1], size_wh[0], 3)
    assert [blocks.read(picture) for picture in frames.pixels] == [1, 5]
