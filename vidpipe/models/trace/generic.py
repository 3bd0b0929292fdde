"""The index rules that vLLM has for models without one of their own, as golden vectors."""

from __future__ import annotations

from typing import Any

from vidpipe.models.ernie45_vl_sampling import uniform_indices
from vidpipe.models.indices import qwen2_vl_indices
from vidpipe.models.trace.attempt import attempt

QWEN2_VL_FPS = 2.0


def sampling(given: dict[str, Any]) -> dict[str, Any]:
    """`generic_loader_sampling`: uniform, and Qwen2-VL's."""
    frames, fps, target_fps = given["total_frames"], given["source_fps"], given["target_fps"]
    uniform, uniform_error = attempt(
        lambda: uniform_indices(
            frames,
            fps,
            target_fps=target_fps if target_fps > 0 else None,
            max_frames=given["num_frames"] if given["num_frames"] > 0 else None,
        )
    )
    qwen2, qwen2_error = attempt(
        lambda: qwen2_vl_indices(frames, fps, target_fps=target_fps if target_fps > 0 else QWEN2_VL_FPS)
    )
    return {
        "opencv_uniform": uniform,
        "opencv_uniform_error": uniform_error,
        "qwen2_vl": qwen2,
        "qwen2_vl_error": qwen2_error,
    }
