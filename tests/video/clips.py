"""Clips made on the spot: block-code pictures, encoded with PyAV."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import av

from tests.hard_inputs import blocks


def write_blocks(
    path: Path,
    *,
    numbers: Sequence[int] = tuple(range(30)),
    size_wh: tuple[int, int] = (128, 96),
    codec: str = "libx264",
    pix_fmt: str = "yuv420p",
    times_ms: Sequence[int] | None = None,
    rate: int = 10,
    options: Mapping[str, str] | None = None,
) -> Path:
    """A clip whose picture i carries numbers[i], shown at times_ms[i] (default: every 100 ms)."""
    width, height = size_wh
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate, options=dict(options or {"g": "10", "bf": "2"}))
        stream.width, stream.height, stream.pix_fmt = width, height, pix_fmt
        if codec not in ("mpeg2video", "mpeg4"):  # these count in frames
            stream.codec_context.time_base = Fraction(1, 1000)
        for place, number in enumerate(numbers):
            frame = av.VideoFrame.from_ndarray(blocks.draw(number, width, height), format="rgb24")
            frame.pts = times_ms[place] if times_ms is not None else place * 100
            frame.time_base = Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def set_display_matrix(path: Path, matrix: Sequence[int]) -> None:
    """Write a 3x3 display matrix (nine numbers, as a player applies it) into an MP4's only track."""
    content = bytearray(path.read_bytes())
    at = content.index(b"tkhd")
    version = content[at + 4]
    start = at + 4 + 4 + (32 if version == 1 else 20) + 16
    scale = [1 << 16, 1 << 16, 1 << 30]
    content[start : start + 36] = struct.pack(">9i", *(m * scale[i % 3] for i, m in enumerate(matrix)))
    path.write_bytes(content)
