"""Frame pickers of harnesses over golden vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vidpipe.benchmarks import frame_pickers as pick
from vidpipe.models.indices import spread_truncated
from vidpipe.models.llava_onevision2_sampling import eval_indices, native_count, native_indices


def indices(given: dict[str, Any]) -> dict[str, Any]:
    """`frame_indices.json`: a list for each harness, or `{"error": "TypeName"}` where it raises."""
    frames, fps, count = given["total_frames"], given["fps"], given["n"]
    start_s, end_s = given["bound"] or (None, None)

    def native(num_frames: int | None) -> list[int]:
        wanted = native_count(frames, fps, target_fps=None, num_frames=num_frames, max_frames=count)
        return native_indices(frames, wanted)

    harnesses: dict[str, Callable[[], list[int]]] = {
        "lmms_vsibench_multiimage": lambda: pick.at_most_truncated(frames, count),
        "vlmevalkit_vsi_uniform_tail": lambda: spread_truncated(frames, count),
        "vlmevalkit_vsi_uniform": lambda: spread_truncated(frames, count),
        "vlmevalkit_vsi_chunk_center": lambda: pick.chunk_centers(frames, count),
        "vlmevalkit_videomme_nframe": lambda: pick.inner(frames, count),
        "lmms_longvideobench": lambda: pick.whole_steps(frames, fps, count),
        "mvbench_official": lambda: pick.segment_centers(frames, fps, count, start_s, end_s),
        "ov2_processor_max_frames": lambda: native(None),
        "ov2_processor_fixed": lambda: native(count),
        "ov2_eval_fps1_max_frames": lambda: eval_indices(frames, fps, target_fps=1.0, max_frames=count),
        "qwen_nframes": lambda: pick.qwen_fixed(frames, count),
    }
    return {name: _attempt(call) for name, call in harnesses.items()}


def _attempt(call: Callable[[], list[int]]) -> list[int] | dict[str, str]:
    try:
        return call()
    except (ValueError, ZeroDivisionError) as error:
        return {"error": type(error).__name__}
