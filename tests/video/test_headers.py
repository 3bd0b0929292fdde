"""What a header claims, where it does not count frames."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from vidpipe.video.headers import read_header

NTSC = Fraction(30000, 1001)


@pytest.mark.parametrize("frames", [31, 45, 149])
def test_frames_by_duration_are_rounded_not_cut(tmp_path: Path, frames: int) -> None:
    """Matroska states its duration in milliseconds: 45 frames of 29.97 a second last 44.985."""
    path = tmp_path / "clip.mkv"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=NTSC)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for _ in range(frames):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(np.zeros((72, 64), np.uint8), format="yuv420p")))
        container.mux(stream.encode())
    header = read_header(path)
    assert header.frames == frames and header.duration_s * header.fps < frames
