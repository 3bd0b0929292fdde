"""Places where one rounding in float32 decides which frame is shown; indices that torch 2.13 gave."""

import pytest

from vidpipe.models.indices import qwen2_vl_indices, spread_float32, steps_float32


@pytest.mark.parametrize(("frames", "count", "place", "index"), [(48, 23, 11, 23), (29, 25, 9, 10)])
def test_spreading_steps_from_both_ends(frames: int, count: int, place: int, index: int) -> None:
    assert spread_float32(frames, count)[place] == index


@pytest.mark.parametrize(
    ("frames", "count", "place", "index"), [(174_126, 77, 69, 156_034), (160_559, 67, 62, 148_576)]
)
def test_steps_are_rounded_in_rows_of_lanes(frames: int, count: int, place: int, index: int) -> None:
    assert steps_float32(frames, count)[place] == index


@pytest.mark.parametrize(
    ("frames", "fps", "target_fps", "count"),
    [(1000, 60.0, 60, 500), (10_000, 30.0, 30, 768), (5, 1.0, 30, 4), (100, 25.0, 0.1, 4)],
)
def test_qwen2_vl_takes_an_even_number_from_4_to_768(frames: int, fps: float, target_fps: float, count: int) -> None:
    assert len(qwen2_vl_indices(frames, fps, target_fps=target_fps)) == count
