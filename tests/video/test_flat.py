from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest

from vidpipe.video.decode import decode_frames
from vidpipe.video.flat import flat_note


def flat(*rgb: int) -> np.ndarray:
    return np.broadcast_to(np.array(rgb, np.uint8), (3, 48, 64, 3))


@pytest.mark.parametrize(
    ("rgb", "word"),
    [((0, 0, 0), "black"), ((16, 16, 16), "black"), ((0, 135, 0), "unwritten"), ((9, 9, 90), "flat")],
)
def test_flat_frames_are_noticed(rgb: tuple[int, int, int], word: str) -> None:
    assert (flat_note(flat(*rgb)) or "").startswith(word + ": all 3 frames")


def test_one_frame_with_content_is_enough() -> None:
    pixels = flat(0, 0, 0).copy()
    pixels[1, :, :20] = 200
    assert flat_note(pixels) is None


def test_the_note_reaches_the_frames(tmp_path: Path) -> None:
    clip = tmp_path / "black.mp4"
    with av.open(str(clip), "w") as container:
        stream = container.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for _ in range(4):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(flat(0, 0, 0)[0].copy(), format="rgb24")))
        container.mux(stream.encode())
    assert any(note.startswith("black:") for note in decode_frames(clip, [0, 3]).notes)
