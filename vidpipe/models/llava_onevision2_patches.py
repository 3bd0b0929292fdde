"""What LLaVA-OneVision-2's vision tower is told about patches: positions, attention windows, codec canvases.

Sources: the LLaVA-OneVision-2 repository's `build_patch_positions`; vLLM
`model_executor/models/llava_onevision2.py` (`_build_window_cu_seqlens`, `_codec_timestamp_runs`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt

FRAMES_A_WINDOW = 4


def patch_positions(
    grid_thw: tuple[int, int, int], merge: int, frame_numbers: Sequence[int] | None = None
) -> npt.NDArray[np.int64]:
    """Position (t, h, w) of every patch, [t * h * w, 3], block by block of `merge` x `merge` patches.

    Args:
        grid_thw: Patches before merging.
        merge: Patches along each side of a block.
        frame_numbers: What t says for each frame: the source frame's number in the
            repository's processor (as trained). Left out, frames count from 0. vLLM gives
            each frame a grid of its own, so there every t is 0.
    """
    frames, rows, columns = grid_thw
    times = np.arange(frames) if frame_numbers is None else np.asarray(frame_numbers)
    grid = np.stack(np.meshgrid(times, np.arange(rows), np.arange(columns), indexing="ij"), axis=-1)
    blocks = grid.reshape(frames, rows // merge, merge, columns // merge, merge, 3).transpose(0, 1, 3, 2, 4, 5)
    return np.ascontiguousarray(blocks.reshape(-1, 3), dtype=np.int64)


def window_ends(grids_thw: Sequence[tuple[int, int, int]], frames_a_window: int = FRAMES_A_WINDOW) -> list[int]:
    """Borders between the windows that attention does not cross: patches before each, from 0 (`cu_seqlens`).

    Every grid is cut along time into windows of `frames_a_window` frames, the last one
    shorter. Frames of a video are grids of one frame each: no frame sees another.
    """
    ends = [0]
    for frames, rows, columns in grids_thw:
        for first in range(0, frames, frames_a_window):
            ends.append(ends[-1] + min(frames_a_window, frames - first) * rows * columns)
    return ends


def frame_runs(source_frames: Sequence[int], merge: int) -> list[tuple[int, int]]:
    """Source frame and tokens of each run of patches from one source frame on codec canvases.

    Args:
        source_frames: For each patch in order, the source frame that it shows; below 0 for none.
        merge: Patches along each side that become one token; a run too short for a token is left out.
    """
    runs = [(frame, sum(1 for _ in patches) // merge**2) for frame, patches in groupby(source_frames)]
    return [(frame, tokens) for frame, tokens in runs if frame >= 0 and tokens > 0]


def codec_runs(source_frames: Sequence[int], fps: float, merge: int) -> list[tuple[float, int]]:
    """The same with the frame's time in seconds as vLLM and the checkpoint's code compute it: number / rate."""
    return [(frame / fps, tokens) for frame, tokens in frame_runs(source_frames, merge)]
