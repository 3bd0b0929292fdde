"""Our Qwen3-VL rules against vectors computed with the upstream functions (sources in the files)."""

import pytest

from tests.parity.vectors import Case, cases
from vidpipe.errors import MediaError
from vidpipe.models.qwen3_vl import pair_times, sample_indices, video_layout


@pytest.mark.parametrize("case", cases("qwen3vl_sampling"))
def test_frame_indices(case: Case) -> None:
    given, expected = case.input, case.expected
    options = {
        key: given["loader_kwargs"][key] for key in ("min_frames", "max_frames") if key in given["loader_kwargs"]
    }
    for rule, key, error in (("vllm", "indices", "error"), ("hf", "hf_indices", "hf_error")):
        if expected[error] is None and expected[key] is not None:
            found = sample_indices(
                given["total_frames"], given["source_fps"], target_fps=given["target_fps"], rule=rule, **options
            )
            assert found == expected[key], rule


@pytest.mark.parametrize("case", [c for c in cases("qwen3vl_sampling") if c.expected["timestamps_no_resample"]])
def test_pair_times(case: Case) -> None:
    times_s = [index / case.expected["metadata_fps"] for index in case.expected["indices"]]
    assert pair_times(times_s) == pytest.approx(case.expected["timestamps_no_resample"], rel=1e-9)


@pytest.mark.parametrize("case", cases("smart_resize_qwen3vl_video"))
def test_resize_and_tokens(case: Case) -> None:
    given, expected = case.input, case.expected
    processor = {key: given[key] for key in ("patch_size", "merge_size", "temporal_patch_size", "cap_pixels_per_frame")}
    processor["size"] = {key: given[key] for key in ("shortest_edge", "longest_edge")}
    if expected["error"] is not None:
        with pytest.raises((MediaError, ValueError)):
            video_layout(given["num_frames"], given["height"], given["width"], processor)
        return
    layout = video_layout(given["num_frames"], given["height"], given["width"], processor)
    assert layout.size_wh == (expected["resized_w"], expected["resized_h"])
    assert list(layout.grid_thw) == expected["grid_thw"]
    assert layout.vision_tokens == expected["tokens"]
