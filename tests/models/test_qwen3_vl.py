import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidpipe.errors import MediaError
from vidpipe.models.clock import FrameClock
from vidpipe.models.qwen3_vl import Qwen3VL, pair_times, sample_indices, smart_resize
from vidpipe.models.qwen3_vl_prompt import pairs
from vidpipe.recipe.schema import Sampling

FAMILY = Qwen3VL()
PROCESSOR = {"size": {"shortest_edge": 4096, "longest_edge": 25_165_824}}


@given(
    st.integers(1, 100_000),
    st.just(0.0) | st.floats(0.001, 1000),
    st.floats(0.01, 60),
    st.integers(1, 1000),
    st.sampled_from(["vllm", "hf"]),
)
def test_indices_are_in_order_and_in_range(frames: int, fps: float, target: float, most: int, rule: str) -> None:
    indices = sample_indices(frames, fps, target_fps=target, min_frames=1, max_frames=most, rule=rule)
    assert indices == sorted(indices) and len(set(indices)) == len(indices) <= most
    assert indices[0] == 0 and indices[-1] <= frames - 1


@given(st.integers(1, 50), st.floats(1, 120))
def test_the_model_always_gets_two_frames(frames: int, fps: float) -> None:
    sampling = FAMILY.complete(Sampling(), PROCESSOR)
    indices = FAMILY.choose_frames(frames, fps, sampling)
    assert len(indices) >= 2 and max(indices) < frames
    FAMILY.layout(len(indices), 64, 48, sampling, PROCESSOR)


@given(st.lists(st.floats(0, 1e4), min_size=1, max_size=40))
def test_one_time_a_pair(times_s: list[float]) -> None:
    times = pair_times(sorted(times_s))
    assert len(times) == (len(times_s) + 1) // 2 and times == sorted(times)
    assert FAMILY.time_texts(times_s, Sampling())[0].endswith(" seconds>")


def test_every_pair_has_its_time() -> None:
    with pytest.raises(ValueError, match="longer"):
        pairs(["<0.2 seconds>"], [4, 4])


@given(st.integers(2, 768), st.integers(1, 5000), st.integers(1, 5000))
def test_sides_are_multiples_of_the_factor(frames: int, height: int, width: int) -> None:
    if max(height, width) > 100 * min(height, width):
        return
    h, w = smart_resize(frames, height, width, factor=32, temporal_factor=2, min_volume=4096, max_volume=25_165_824)
    assert h % 32 == 0 and w % 32 == 0 and h >= 32 and w >= 32


def test_extreme_shapes_are_refused() -> None:
    with pytest.raises(MediaError) as caught:
        FAMILY.layout(4, 8192, 32, FAMILY.complete(Sampling(), PROCESSOR), PROCESSOR)
    assert caught.value.kind == "aspect_ratio"


def test_a_side_under_the_factor_grows_to_it_and_the_other_with_it() -> None:
    bounds = {"factor": 32, "temporal_factor": 2, "min_volume": 4096, "max_volume": 25_165_824}
    assert smart_resize(2, 100, 20, **bounds) == (160, 32) and smart_resize(2, 20, 100, **bounds) == (32, 160)
    assert smart_resize(2, 100, 32, **bounds) == (96, 32)


def test_where_the_checkpoint_caps_frames_each_has_768_tokens_at_most() -> None:
    capped = {**PROCESSOR, "cap_pixels_per_frame": True}
    sampling = FAMILY.complete(Sampling(), capped)
    sizes = [FAMILY.layout(4, width, 960, sampling, capped).size_wh for width in (1280, 1279)]
    assert sizes == [(1024, 768), (992, 768)]
    assert FAMILY.layout(4, 1280, 960, sampling, PROCESSOR).size_wh == (1280, 960)


def test_a_rate_is_assumed_only_where_no_number_of_frames_is_given() -> None:
    assert FAMILY.complete(Sampling(), PROCESSOR).fps == 2.0
    assert FAMILY.complete(Sampling(rule="hf", num_frames=8), PROCESSOR).fps is None


def test_pixel_bounds_of_the_recipe_win() -> None:
    sampling = FAMILY.complete(Sampling(max_pixels=8 * 64 * 64), PROCESSOR)
    assert FAMILY.layout(8, 640, 640, sampling, PROCESSOR).size_wh == (64, 64)
    assert FAMILY.processor_kwargs(sampling, PROCESSOR)["size"]["longest_edge"] == 8 * 64 * 64


def test_the_processor_never_samples_again() -> None:
    metadata = FAMILY.engine_metadata(FrameClock((0, 4), 8.0, 24), Sampling())
    assert metadata["do_sample_frames"] is False
    assert metadata["frames_indices"] == [0, 4] and metadata["fps"] == 8.0 and metadata["total_num_frames"] == 24
