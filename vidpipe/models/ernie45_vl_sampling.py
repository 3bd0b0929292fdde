"""Which frames ERNIE-4.5-VL is shown: its own rule, that of vLLM's loader, that of transformers.

Sources: the checkpoint's `processing_ernie4_5_vl.py` (`_set_video_frame_args`, `get_frame_indices`;
FastDeploy has the same); vLLM `multimodal/video.py` (VideoBackend: the loader that ERNIE gets, since none is
registered for it); transformers `models/ernie4_5_vl_moe` (`sample_frames`).
"""

from __future__ import annotations

import math

import numpy as np

from vidpipe.models.indices import spread_truncated, steps_float32

MIN_FRAMES, MAX_FRAMES = 16, 180
NATIVE_FPS = 2.0


def native_indices(
    frames: int,
    fps: float,
    *,
    target_fps: float = NATIVE_FPS,
    num_frames: int | None = None,
    min_frames: int = MIN_FRAMES,
    max_frames: int = MAX_FRAMES,
) -> list[int]:
    """Frame indices of the model's own processor: 2 a second, or where those are too few or many, so many intervals.

    At a rate the last interval may be a part of one, so that there is one frame more than
    `max_frames` in the extreme. Of an interval its first frame is taken.

    Args:
        frames: Frames of the clip, at least 1.
        fps: Its average rate, above 0.
        target_fps: Frames per second to aim for.
        num_frames: This number of intervals in place of a rate.
        min_frames: So many intervals where the rate gives fewer frames.
        max_frames: So many intervals where the rate gives more frames.
    """
    duration_s = frames / fps
    if num_frames is None:
        at_rate = int(duration_s * target_fps)
        if at_rate < min_frames:
            num_frames = min_frames
        elif at_rate > max_frames:
            num_frames = max_frames
    if num_frames is not None:
        borders: list[int] = np.linspace(0, frames, min(num_frames, frames) + 1).astype(int).tolist()
        return borders[:-1]
    at_s = np.arange(0, duration_s, 1 / target_fps)
    indices: list[int] = np.around(at_s * fps).astype(int).tolist()
    return [index for index in indices if index < frames]


def uniform_indices(frames: int, fps: float, *, target_fps: float | None, max_frames: int | None) -> list[int]:
    """Frame indices of vLLM's uniform loader: the fewer of `max_frames` and of `target_fps` a second, at least 1.

    Args:
        frames: Frames of the clip, at least 1.
        fps: Its average rate; 0 if unknown, and then a target rate leaves one frame.
        target_fps: None for no limit.
        max_frames: None for no limit.
    """
    count = frames if max_frames is None else min(max_frames, frames)
    if target_fps is not None:
        duration_s = frames / fps if fps > 0 else 0.0
        count = min(count, math.floor(duration_s * target_fps))
    return spread_truncated(frames, max(1, count))


def hf_indices(
    frames: int,
    fps: float,
    *,
    target_fps: float | None = None,
    num_frames: int | None = None,
    min_frames: int = MIN_FRAMES,
    max_frames: int = MAX_FRAMES,
) -> list[int]:
    """Frame indices of transformers' processor, which may end in one that equals `frames` and does not exist.

    Without a rate and a number it takes every frame, thinned to `max_frames`.

    Raises:
        ValueError: a number out of bounds or above the clip, a rate for a clip without one, or both.
    """
    if target_fps is not None and num_frames is not None:
        raise ValueError("a rate and a number of frames exclude each other")
    count: float
    if num_frames is not None:
        if not min_frames <= num_frames <= max_frames:
            raise ValueError(f"{num_frames} frames are not between {min_frames} and {max_frames}")
        count = num_frames
    else:
        if target_fps is not None and fps <= 0:
            raise ValueError("the clip's own rate is not known, so no other can be sampled from it")
        count = frames / fps * target_fps if target_fps is not None else frames
        count = min(max(count, min_frames), max_frames, frames)
    if count > frames:
        raise ValueError(f"{count} frames are more than the clip's {frames}")
    return steps_float32(frames, count)
