"""Which frames LLaVA-OneVision-2 sees: the rules of vLLM, of its repository, and behind its published scores.

Sources: vLLM `model_executor/models/llava_onevision2.py` (`_ov2_smart_nframes`,
`LlavaOnevision2VideoBackend`); the LLaVA-OneVision-2 repository's
`video_processing_llava_onevision2.py` (`choose_target_frames`, `select_frame_indices`,
`format_timestamp`); qwen-vl-utils `smart_nframes`.
"""

from __future__ import annotations

from vidpipe.models.indices import spread_float32, spread_rounded
from vidpipe.models.resize import floor_to

DEFAULT_FPS = 1.0
MIN_FRAMES = 4
VLLM_MAX_FRAMES = 32


def smart_nframes(frames: int, fps: float, *, target_fps: float, max_frames: int) -> int:
    """Even number of frames for a clip of `frames` frames at `fps` (0 if unknown: then the count alone decides).

    The bounds apply in this order: at least 4, at most `max_frames` made even, at most the
    clip; then down to even, and never under 2. So a cap below 4 wins over the 4.
    """
    wanted = frames / fps * target_fps if fps > 0 else frames
    wanted = min(max(wanted, MIN_FRAMES), floor_to(max_frames, 2), frames)
    return max(floor_to(wanted, 2), 2)


def vllm_indices(
    frames: int, fps: float, *, target_fps: float = DEFAULT_FPS, max_frames: int = VLLM_MAX_FRAMES
) -> list[int]:
    """Frame indices of vLLM's loader; a clip of one frame gives that frame twice, one of none an empty list."""
    if frames <= 0:
        return []
    return spread_rounded(frames, smart_nframes(frames, fps, target_fps=target_fps, max_frames=max_frames))


def eval_indices(frames: int, fps: float, *, target_fps: float, max_frames: int) -> list[int]:
    """Frame indices behind the published scores: the same count, spread in float32 (a frame off in some clips)."""
    if frames <= 0:
        return []
    return spread_float32(frames, smart_nframes(frames, fps, target_fps=target_fps, max_frames=max_frames))


def native_count(frames: int, fps: float, *, target_fps: float | None, num_frames: int | None, max_frames: int) -> int:
    """Frames that the model's own processor aims for: by rate, else the fixed number, else by length (8, 16, cap)."""
    if target_fps is not None:
        return min(max(1, int(frames / fps * target_fps)), max_frames)
    if num_frames is not None:
        return num_frames
    duration_s = frames / fps
    return 8 if duration_s < 10 else 16 if duration_s < 30 else max_frames


def native_indices(frames: int, count: int) -> list[int]:
    """All frames if the clip has no more than `count`, else `count` of them from first to last."""
    return list(range(frames)) if frames <= count else spread_float32(frames, count)


def native_time_s(time_s: float) -> float:
    """`time_s` after the way through `MM:SS.ffffff`, which keeps six decimals."""
    minutes = int(time_s // 60)
    return minutes * 60 + float(f"{time_s - minutes * 60:.6f}")
