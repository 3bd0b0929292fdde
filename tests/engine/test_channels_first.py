"""Frames as their processor computes on them: without a copy, and with nothing changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.conftest import TINY_MODEL
from vidpipe.engine import torchvision_on_cpu
from vidpipe.engine.channels_first import channels_first

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def processor() -> Any:
    torchvision_on_cpu.install()
    from transformers import AutoVideoProcessor

    return AutoVideoProcessor.from_pretrained(TINY_MODEL)


def frames(count: int, height: int, width: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.random.default_rng(0).integers(0, 256, (count, height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize(("count", "height", "width"), [(8, 480, 854), (3, 719, 1281), (2, 33, 97), (5, 128, 128)])
def test_the_processor_makes_the_same_of_both(processor: Any, count: int, height: int, width: int) -> None:
    pixels = frames(count, height, width)
    told = {"fps": 2.0, "total_num_frames": count, "duration": count / 2, "frames_indices": list(range(count))}
    array, view = (
        processor(videos=[one], video_metadata=[told], do_sample_frames=False, return_tensors="pt")
        for one in (pixels, channels_first(pixels))
    )
    assert array["pixel_values_videos"].equal(view["pixel_values_videos"])
    assert array["video_grid_thw"].tolist() == view["video_grid_thw"].tolist()


def test_nothing_is_copied() -> None:
    pixels = frames(2, 6, 8)
    assert channels_first(pixels).data_ptr() == pixels.ctypes.data
    assert channels_first(pixels).shape == (2, 3, 6, 8)
