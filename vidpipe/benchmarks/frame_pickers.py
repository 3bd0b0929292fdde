"""Which frames each harness shows a model that takes `count` of them: the numbers that scores elsewhere rest on.

Frame `i` of a clip of `frames` frames at `fps`. They differ by a few frames each, which is
part of why one model's scores differ between harnesses; docs/benchmarks.md says which of vidpipe's sampling rules
is whose.
"""

from __future__ import annotations

import numpy as np

from vidpipe.models.indices import spread_float32, spread_truncated

OPEN_END_S = 100_000.0


def at_most_truncated(frames: int, count: int) -> list[int]:
    """lmms-eval @75571cf, lmms_eval/tasks/vsibench/utils.py, sample_vsibench_video_frames."""
    return spread_truncated(frames, min(count, frames))


def _middles(first: int, length: int, count: int) -> list[int]:
    size = length / count
    return [int(first + size / 2 + np.round(size * place)) for place in range(count)]


def chunk_centers(frames: int, count: int) -> list[int]:
    """VLMEvalKit @e8e78f0, vlmeval/dataset/vsibench.py, VsiBench.save_video_frames, strategy `chunk_center`."""
    return [min(index, frames - 1) for index in _middles(0, frames, count)]


def inner(frames: int, count: int) -> list[int]:
    """Never the first frame, never the last: VLMEvalKit @e8e78f0, vlmeval/dataset/videomme.py, save_video_frames."""
    return [int(place * (frames / (count + 1))) for place in range(1, count + 1)]


def whole_steps(frames: int, fps: float, count: int) -> list[int]:
    """At most a frame a second, in steps of whole frames, so that a long clip's end is never seen.

    lmms-eval @75571cf, lmms_eval/tasks/longvideobench/utils.py, load_video.
    """
    duration_s = frames / fps
    frames, count = int(duration_s * fps), min(count, int(duration_s))
    return [int(frames / count) * place for place in range(count)]


def segment_centers(frames: int, fps: float, count: int, start_s: float | None, end_s: float | None) -> list[int]:
    """OpenGVLab/Ask-Anything @4dd8210, video_chat2/mvbench.ipynb, get_index: middles of equal segments of a window."""
    first = max(0, round((-OPEN_END_S if start_s is None else start_s) * fps))
    last = min(round((OPEN_END_S if end_s is None else end_s) * fps), frames - 1)
    return _middles(first, last - first, count)


def qwen_fixed(frames: int, count: int) -> list[int]:
    """qwen-vl-utils 0.0.14, `smart_nframes` with `nframes`: an even number, spread in float32.

    Raises:
        ValueError: the clip has fewer frames.
    """
    even = 2 * round(count / 2)
    if not 2 <= even <= frames:
        raise ValueError(f"{even} frames of a clip of {frames}")
    return spread_float32(frames, even)
