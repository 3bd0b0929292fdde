"""Faults of upstream's sampling, each shown with what is done here in its place. Sources in docs/models.md."""

from __future__ import annotations

import pytest

from vidpipe.errors import MediaError
from vidpipe.models import ernie45_vl, ernie45_vl_sampling, llava_onevision2, minimax_m3, qwen3_vl
from vidpipe.models.clock import FrameClock, clock_of
from vidpipe.models.family import Family
from vidpipe.models.registry import get_family
from vidpipe.models.trace import qwen3_vl as qwen3_vl_trace
from vidpipe.models.trace.llava_onevision2 import vllm_time_tag
from vidpipe.recipe.schema import Sampling


def family_and_sampling(name: str, **options: object) -> tuple[Family, Sampling]:
    family = get_family(name)
    return family, family.complete(Sampling.model_validate(options), family.published)


def test_double_sampling() -> None:
    """vLLM + Qwen3-VL: a clip whose frames were all kept is sampled again at 2 fps; 100 frames become 6."""
    upstream = qwen3_vl_trace.sampling({"total_frames": 100, "source_fps": 30.0, "target_fps": 30, "loader_kwargs": {}})
    assert len(upstream["indices"]) == 100 and len(upstream["timestamps"]) == 3
    family, sampling = family_and_sampling("qwen3_vl", fps=30)
    indices = family.choose_frames(100, 30.0, sampling)
    metadata = family.engine_metadata(FrameClock(tuple(indices), 30.0, 100), sampling)
    assert len(indices) == 100 and metadata["do_sample_frames"] is False


def test_qwen3_vl_refuses_a_single_frame() -> None:
    """transformers raises "t:1 must be larger than temporal_factor:2"; the frame is shown twice here."""
    with pytest.raises(ValueError, match="are less than one temporal patch"):
        qwen3_vl.smart_resize(1, 64, 64, factor=32, temporal_factor=2, min_volume=1, max_volume=10**9)
    family, sampling = family_and_sampling("qwen3_vl")
    assert family.choose_frames(1, 25.0, sampling) == [0, 0]


def test_more_frames_asked_than_there_are() -> None:
    """vLLM counts 3 times for HF's 5 pairs of a 5-frame clip with num_frames 10, and asserts; here both are 5."""
    family, sampling = family_and_sampling("qwen3_vl", rule="hf", num_frames=10)
    indices = family.choose_frames(5, 5.0, sampling)
    layout = family.layout(len(indices), 64, 64, sampling, family.published)
    assert len(indices) == 10 and max(indices) == 4
    assert len(family.time_texts([i / 5 for i in indices], sampling)) == layout.grid_thw[0] == 5


def test_ernie_index_past_the_end() -> None:
    """transformers' float32 steps give 181 indices of 180, the last one equal to the frame count."""
    assert ernie45_vl_sampling.hf_indices(1799, 10.0, target_fps=2)[-1] == 1799
    family, sampling = family_and_sampling("ernie45_vl", rule="hf", fps=2)
    indices = family.choose_frames(1799, 10.0, sampling)
    assert len(indices) == 180 and indices[-1] < 1799


def test_ernie_odd_counts_break_the_resampler() -> None:
    """vLLM fails inside the encoder on an odd number of frames above 1; the last frame is repeated here."""
    family, sampling = family_and_sampling("ernie45_vl", rule="vllm")
    assert family.choose_frames(31, 25.0, sampling)[-2:] == [30, 30]


def test_ernie_one_frame_above_its_maximum() -> None:
    """The model's own processor takes 181 frames of 90.3 s and repeats one; here its maximum of 180 holds."""
    assert len(ernie45_vl_sampling.native_indices(903, 10.0)) == 181
    family, sampling = family_and_sampling("ernie45_vl")
    assert len(family.choose_frames(903, 10.0, sampling)) == 180


def test_ernie_sixtieth_second() -> None:
    """transformers draws 59.996 s as `00:00:60.00`. The text is what the model knows, so it stays."""
    assert ernie45_vl.drawn_time(59.996) == "time: 00:00:60.00"


def test_llava_onevision2_tag_drift() -> None:
    """vLLM prints times from a float32 copy: 6.45 s as 6.4 where training said 6.5. It is told tenths here."""
    time_s = 387 / 60
    assert vllm_time_tag(time_s) != llava_onevision2.time_tag(time_s)
    for rule in ("vllm", "native", "ov2_eval"):
        family, sampling = family_and_sampling("llava_onevision2", rule=rule)
        metadata = family.engine_metadata(FrameClock((387,), 60.0, 600), sampling)
        told = metadata["frames_indices"][0] / metadata["fps"]
        assert vllm_time_tag(told) == llava_onevision2.time_tag(time_s)
        assert family.time_texts([time_s], sampling) == ["<6.5 seconds>"]


def test_llava_onevision2_unknown_rate() -> None:
    """vLLM takes 1 fps for a file that states none, so times equal frame numbers; they are read from the file here."""
    clock = clock_of([0, 30], [0.0, 1.0], first_index=0, frames=60, fps=0.0, zero_s=0.0, time_base="real")
    family, sampling = family_and_sampling("llava_onevision2")
    assert family.time_texts(clock.times_s, sampling) == ["<0.0 seconds>", "<1.0 seconds>"]


def test_llava_onevision2_single_frame() -> None:
    """vLLM's OpenCV reader makes one frame of the two asked for; the count told and shown is two here."""
    family, sampling = family_and_sampling("llava_onevision2")
    assert family.choose_frames(1, 25.0, sampling) == [0, 0]


def test_minimax_divides_by_an_unknown_rate() -> None:
    """vLLM and transformers divide the index by the rate 0; a rate is always told here."""
    clock = clock_of([0], [0.0], first_index=0, frames=60, fps=0.0, zero_s=0.0, time_base="nominal")
    family, sampling = family_and_sampling("minimax_m3")
    metadata = family.engine_metadata(clock, sampling)
    assert metadata["frames_indices"][0] / metadata["fps"] == 0.0


def test_minimax_has_no_cap() -> None:
    """vLLM reads none of its frame limits: an hour at 1 fps is 3,600 frames. 768 of them, first to last, here."""
    assert len(minimax_m3.interval_indices(90_000, 25.0)) == 3600
    family, sampling = family_and_sampling("minimax_m3")
    indices = family.choose_frames(90_000, 25.0, sampling)
    assert len(indices) == 768 and indices[0] == 0 and indices[-1] == 89_975


def test_variable_rate_times() -> None:
    """Every upstream loader maps index to index / average fps: seconds off on variable-rate files."""
    indices, times_s = [0, 1, 2, 3], [0.0, 10.0, 10.1, 10.2]
    told = {
        base: clock_of(
            indices,
            times_s,
            first_index=0,
            frames=4,
            fps=4 / 10.3,
            zero_s=0.0,
            time_base=base,  # type: ignore[arg-type]
        ).times_s
        for base in ("real", "nominal")
    }
    assert told["real"] == times_s
    assert told["nominal"][2] == pytest.approx(5.15)


def test_ernie_shapes_beyond_200_to_1() -> None:
    """vLLM counts tokens for a shape that transformers refuses; each rule does as its own upstream."""
    family, sampling = family_and_sampling("ernie45_vl", rule="vllm", min_pixels=3136, max_pixels=4_842_768)
    assert family.layout(2, 6030, 30, sampling, family.published).grid_thw == (2, 2, 400)
    assert family.layout(2, 6001, 30, sampling, family.published).grid_thw == (2, 2, 400)
    assert family.layout(2, 6000, 30, sampling, family.published).grid_thw == (2, 2, 428), "200:1 is not beyond it"
    hf = family.complete(sampling.model_copy(update={"rule": "hf"}), family.published)
    with pytest.raises(MediaError):
        family.layout(2, 6030, 30, hf, family.published)
