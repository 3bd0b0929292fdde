"""Faults of a video pipeline, injected between decoding and prompt, so that their price in right answers can be read.

Each is what a real bug does: pixels and the times told about them come apart, or the pixels are wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tests.world.rows import Fault
from vidpipe.engine.interface import Video

SEED = 3
Frames = npt.NDArray[np.uint8]


def _indices(video: Video) -> list[int]:
    return list(video.metadata["frames_indices"])


def _told(video: Video, indices: Sequence[int]) -> Video:
    """Other frame numbers, from which the prompt's times are made."""
    return replace(video, metadata={**video.metadata, "frames_indices": list(indices)})


def _shown(video: Video, pixels: Frames) -> Video:
    return replace(video, pixels=np.ascontiguousarray(pixels))


def times_shuffled(video: Video) -> Video:
    """The times of the pairs in another order."""
    pairs = np.array_split(_indices(video), range(2, len(video.pixels), 2))
    order = np.random.default_rng(SEED).permutation(len(pairs))
    return _told(video, [int(index) for place in order for index in pairs[place]][: len(video.pixels)])


def times_a_second_late(video: Video) -> Video:
    """All times one second later."""
    return _told(video, [index + round(video.metadata["fps"]) for index in _indices(video)])


def rate_doubled(video: Video) -> Video:
    """The file's rate taken for twice what it is: all times halved."""
    return replace(video, metadata={**video.metadata, "fps": 2 * video.metadata["fps"]})


def last_frames_dropped(video: Video) -> Video:
    """The last third of the frames missing, from a decoder that gives up early."""
    left = max(2, len(video.pixels) * 2 // 3)
    return _told(_shown(video, video.pixels[:left]), _indices(video)[:left])


def frames_shuffled(video: Video) -> Video:
    """Frames in another order, times in the right one."""
    return _shown(video, video.pixels[np.random.default_rng(SEED).permutation(len(video.pixels))])


def frames_backward(video: Video) -> Video:
    """Frames from last to first."""
    return _shown(video, video.pixels[::-1])


def one_frame_over_and_over(video: Video) -> Video:
    """A decoder that does not move on: the first frame each time."""
    return _shown(video, np.repeat(video.pixels[:1], len(video.pixels), axis=0))


def red_and_blue_swapped(video: Video) -> Video:
    """BGR taken for RGB."""
    return _shown(video, video.pixels[..., ::-1])


def upside_down(video: Video) -> Video:
    """A rotation of 180 degrees that nobody applied."""
    return _shown(video, video.pixels[:, ::-1, ::-1])


def blank(video: Video) -> Video:
    """Nothing but grey."""
    return _shown(video, np.full_like(video.pixels, 60))


FAULTS: Mapping[str, Fault] = {
    fault.__name__.replace("_", " "): fault
    for fault in (
        *(times_shuffled, times_a_second_late, rate_doubled, last_frames_dropped, frames_shuffled, frames_backward),
        *(one_frame_over_and_over, red_and_blue_swapped, upside_down, blank),
    )
}
