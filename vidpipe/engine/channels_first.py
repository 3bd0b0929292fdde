"""Frames in the order in which transformers' video processors compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

ARCHITECTURES = frozenset({"Qwen3VLForConditionalGeneration", "Qwen3VLMoeForConditionalGeneration"})
"""Whose processor was tried with it; others make pictures of PIL's of each frame, or read arrays only."""


def channels_first(pixels: npt.NDArray[np.uint8]) -> Any:
    """Frames [frames, height, width, 3] as a tensor [frames, 3, height, width] on the same memory.

    Of an array the processors make such a tensor by copying it (transformers `video_processing_utils.py`,
    `_prepare_input_videos`), which takes longer than to resize it; what they make of the two is equal.
    """
    import torch

    return torch.from_numpy(pixels).permute(0, 3, 1, 2)
