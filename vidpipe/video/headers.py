"""What a file's header says, in a few milliseconds: good enough to plan with, never believed for more."""

from __future__ import annotations

from dataclasses import dataclass

from vidpipe.video.container import PathLike, display_name, open_media
from vidpipe.video.streams import choose_stream

MOST_FRAMES = 2**25
"""Thirteen days at 30 a second. Beyond it a claim is a placeholder, or torn: AVI recorders write 0xFFFFFFFF."""


@dataclass(frozen=True)
class Header:
    """Claims of a header; 0 where it claims nothing."""

    frames: int
    fps: float
    width: int
    height: int
    duration_s: float


def read_header(path: PathLike) -> Header:
    """The header of the video in `path`.

    Raises:
        MediaError: it cannot be opened.
    """
    with open_media(path) as container:
        stream = choose_stream(container, display_name(path))
        fps = float(stream.average_rate or 0)
        duration_s = (container.duration or 0) / 1_000_000  # PyAV gives microseconds
        frames = stream.frames or round(duration_s * fps)
        if not 0 <= frames <= MOST_FRAMES:
            frames, duration_s = 0, 0.0  # it was made of the same
        return Header(frames, fps, stream.codec_context.width, stream.codec_context.height, duration_s)
