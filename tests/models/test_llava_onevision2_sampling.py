"""LLaVA-OneVision-2's counts of frames at their borders, beside the vectors from upstream (`tests/parity`)."""

from __future__ import annotations

import pytest

from vidpipe.models.llava_onevision2_sampling import (
    eval_indices,
    native_count,
    native_indices,
    native_time_s,
    smart_nframes,
    vllm_indices,
)


@pytest.mark.parametrize(
    ("frames", "max_frames", "count"),
    [(100, 32, 4), (3, 32, 2), (1, 32, 2), (100, 3, 2), (100, 1, 2), (750, 32, 30), (775, 32, 30), (2500, 33, 32)],
)
def test_a_count_is_even_within_its_bounds_and_never_under_2(frames: int, max_frames: int, count: int) -> None:
    assert smart_nframes(frames, 25.0, target_fps=1.0, max_frames=max_frames) == count


def test_of_a_clip_without_a_rate_its_frames_decide() -> None:
    assert [smart_nframes(frames, 0.0, target_fps=1.0, max_frames=32) for frames in (9, 40)] == [8, 32]


def test_a_clip_without_frames_shows_none() -> None:
    assert vllm_indices(0, 25.0) == [] == eval_indices(0, 25.0, target_fps=1.0, max_frames=32)


@pytest.mark.parametrize(("seconds", "count"), [(9.96, 8), (10, 16), (29.96, 16), (30, 32)])
def test_without_a_rate_the_length_decides(seconds: float, count: int) -> None:
    frames = round(seconds * 25)
    assert native_count(frames, 25.0, target_fps=None, num_frames=None, max_frames=32) == count
    assert native_count(frames, 25.0, target_fps=None, num_frames=5, max_frames=32) == 5
    assert native_count(frames, 25.0, target_fps=1.0, num_frames=5, max_frames=20) == min(int(seconds), 20)


def test_a_rate_gives_at_least_one_frame() -> None:
    assert native_count(10, 25.0, target_fps=0.5, num_frames=None, max_frames=32) == 1


def test_a_clip_of_no_more_frames_than_wanted_is_shown_whole() -> None:
    assert [native_indices(frames, 4) for frames in (3, 4, 7)] == [[0, 1, 2], [0, 1, 2, 3], [0, 2, 4, 6]]


def test_a_time_keeps_six_decimals_of_its_seconds() -> None:
    assert native_time_s(75.1234567) == 60 + 15.123457
    assert [native_time_s(time_s) for time_s in (0.0, 59.9999999, 60.0, 3600.5)] == [0.0, 60.0, 60.0, 3600.5]
