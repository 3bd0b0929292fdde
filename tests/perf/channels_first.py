"""What it costs to hand frames to Qwen3-VL's processor as they come, and with their channels first.

    python -m tests.perf.channels_first

CPU seconds of one core for vLLM's rendering of a clip of 40 frames, Qwen3-VL-2B's settings; what is made is compared.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.perf import qwen3_vl_2b
from vidpipe.engine.channels_first import channels_first
from vidpipe.engine.vllm_prepare import VllmPreparer

FRAMES, TURNS = 40, 5
SIZES_WH = ((1920, 1080), (854, 480))
PROMPT = "<|im_start|>user\n<|vision_start|><|video_pad|><|vision_end|>What?<|im_end|>\n<|im_start|>assistant\n"


def main() -> None:
    """A line for each size."""
    with tempfile.TemporaryDirectory() as folder:
        model = str(qwen3_vl_2b.make(Path(folder) / "model"))
        preparer = VllmPreparer(model, {"model": model, "max_model_len": 16384, "load_format": "dummy"})
        preparer.warm_up()
        vllm_renderer = preparer._renderer()._renderer
        for width, height in SIZES_WH:
            pixels = np.random.default_rng(0).integers(0, 256, (FRAMES, height, width, 3), dtype=np.uint8)
            last_s, last = rendered(vllm_renderer, pixels, lambda array: array)
            first_s, first = rendered(vllm_renderer, pixels, channels_first)
            same = "equal" if last.equal(first) else "DIFFERENT"
            print(f"{width} x {height}: as they come {last_s:.3f} s, channels first {first_s:.3f} s, {same}")


def rendered(vllm_renderer: Any, pixels: Any, change: Callable[[Any], Any]) -> tuple[float, Any]:
    """Least CPU seconds of some turns, and the patches."""
    told = {"fps": 2.0, "duration": FRAMES / 2, "total_num_frames": FRAMES, "frames_indices": list(range(FRAMES))}
    took_s = []
    for turn in range(TURNS):
        prompt = {
            "prompt": PROMPT,
            "multi_modal_data": {"video": [(change(pixels), {**told, "do_sample_frames": False})]},
            "multi_modal_uuids": {"video": [f"{id(change)} {pixels.shape} {turn}"]},
        }
        before_s = time.process_time()
        made = vllm_renderer.render_cmpl([prompt])[0]
        took_s.append(time.process_time() - before_s)
    return min(took_s), made["mm_kwargs"]["video"][0]["pixel_values_videos"].data


if __name__ == "__main__":
    main()
