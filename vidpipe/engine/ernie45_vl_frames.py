"""ERNIE-4.5-VL's frames come with their times drawn; its processor must not draw them a second time.

The older checkpoints' processors never draw on frames that they are handed. The newer ones draw if metadata comes
with the frames, which vLLM then hands over (vllm-project/vllm#31274). A second text over the first is no longer what
the model was trained to see, so every processor here gets the frames alone, as its own `process_vision_info`
would hand them over, and is tried once: if frames of one colour come out in several, it is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vidpipe.errors import CapabilityError

ARCHITECTURE = "Ernie4_5_VLMoeForConditionalGeneration"
PROBE = np.full((2, 112, 112, 3), 128, np.uint8)
ROUNDING = 0.05
"""Share of the largest value by which patches of one colour may differ; black or white text is far above it."""


def hand_over_frames_alone(vllm_processor: Any) -> None:
    """Keep vLLM from handing metadata to the checkpoint's processor, in this process.

    vLLM warns then, once, that times are not rendered.

    Args:
        vllm_processor: vLLM's multimodal processor.

    Raises:
        CapabilityError: the checkpoint's processor draws all the same, or does not take frames alone.
    """
    hub_processor = vllm_processor.info.get_hf_processor()
    type(hub_processor).supports_video_metadata = False  # what vLLM asks
    text = vllm_processor.dummy_inputs.get_dummy_text({"video": 1})
    try:
        patches = np.asarray(hub_processor(text=[text], images=[], videos=[PROBE.copy()])["images"])
    except Exception as error:  # third-party code
        raise CapabilityError(
            f"the checkpoint's processor {type(hub_processor).__name__} does not take frames without metadata "
            f"({type(error).__name__}: {error}), and with it their times might be drawn twice. Use another checkpoint "
            "of ERNIE-4.5-VL."
        ) from error
    if np.ptp(patches, axis=0).max() > ROUNDING * np.abs(patches).max():
        raise CapabilityError(
            f"the checkpoint's processor {type(hub_processor).__name__} draws on frames even if it is told no times, "
            "and vidpipe has drawn them already. Use another checkpoint of ERNIE-4.5-VL."
        )
