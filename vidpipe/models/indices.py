"""The four ways in which upstream spreads frames over a clip; they differ by a frame and are not interchangeable.

numpy only: a plan of a million rows must not import torch. Where upstream computes in
float32 the same roundings are made here, and tests compare them with torch itself.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

F32 = np.float32
ARANGE_LANES = 8
"""Elements that torch's AVX2 kernel makes at once, each from a start that is already rounded to float32."""


def spread_rounded(frames: int, count: int) -> list[int]:
    """`count` indices from the first to the last frame, ties to even: `np.linspace(...).round()`.

    Source: vLLM `multimodal/video.py` (Qwen3VLVideoBackend) and `models/llava_onevision2.py`.
    """
    return _integers(np.linspace(0, frames - 1, count).round())


def spread_truncated(frames: int, count: int) -> list[int]:
    """`count` indices from the first to the last frame, cut toward zero.

    Source: vLLM `multimodal/video.py` (VideoBackend); Moss-VL `video_processing_moss_vl.py`.
    """
    return _integers(np.linspace(0, frames - 1, count))


def spread_float32(frames: int, count: int) -> list[int]:
    """`count` indices as `torch.linspace(0, frames - 1, count).round()` gives them in float32.

    Source: qwen-vl-utils `smart_nframes` users and LLaVA-OneVision-2 `select_frame_indices`.
    torch steps from both ends to the middle with a float32 step and rounds each value once.
    """
    if count == 1:
        return [0]
    last = F32(frames - 1)
    step = np.float64(last / F32(count - 1))
    place = np.arange(count)
    values = np.where(place < count // 2, step * place, np.float64(last) - step * (count - 1 - place))
    return _integers(values.astype(F32).round())


def steps_float32(frames: int, count: float) -> list[int]:
    """Indices 0, s, 2s, ... below `frames` for s = frames / count, as `torch.arange(...).int()` in float32.

    Source: transformers `sample_frames` of Qwen2-VL and ERNIE-4.5-VL. Rounding can give one
    index more than `count`, and that one equals `frames`: it does not exist.
    """
    step = frames / count
    place = np.arange(math.ceil(frames / step))
    lane = place % ARANGE_LANES
    in_lanes = (step * (place - lane)).astype(F32).astype(np.float64) + lane * step
    whole = len(place) - len(place) % (2 * ARANGE_LANES)  # the kernel takes two rows of lanes a turn
    return _integers(np.where(place < whole, in_lanes, step * place).astype(F32))


def qwen2_vl_indices(frames: int, fps: float, *, target_fps: float) -> list[int]:
    """Frame indices of vLLM's loader for Qwen2-VL: an even number of 4 to 768, float32 steps, clamped to the clip.

    Source: vLLM `multimodal/video.py` (Qwen2VLVideoBackend).

    Raises:
        ValueError: the clip's rate is not known.
        ZeroDivisionError: the clip has a single frame.
    """
    if fps <= 0:
        raise ValueError("the clip's own rate is not known, so no other can be sampled from it")
    most = min(768, frames) // 2 * 2
    count = min(max(frames / fps * min(target_fps, 30), 4), most, frames)
    return [min(index, frames - 1) for index in steps_float32(frames, math.floor(count / 2) * 2)]


def _integers(values: npt.NDArray[np.floating]) -> list[int]:
    found: list[int] = values.astype(np.int64).tolist()
    return found
