"""What every family owes to whoever uses it, whatever its rules are."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidpipe.errors import CapabilityError
from vidpipe.models.clock import FrameClock
from vidpipe.models.family import OPTIONS, Family, frames_to_add
from vidpipe.models.prompt import token_ids
from vidpipe.models.registry import FAMILIES, get_family
from vidpipe.recipe.schema import Sampling

EXAMPLE = {"fps": 1.5, "num_frames": 20, "min_frames": 2, "max_frames": 40, "min_pixels": 9000, "max_pixels": 90_000}
families = pytest.mark.parametrize("family", [get_family(name) for name in FAMILIES], ids=list(FAMILIES))
rules = [(get_family(name), rule) for name in FAMILIES for rule in get_family(name).rules]


@pytest.mark.parametrize(("family", "rule"), rules, ids=[f"{family.name}-{rule}" for family, rule in rules])
@given(frames=st.integers(1, 3000), fps=st.just(0.0) | st.floats(0.1, 240), target=st.none() | st.floats(0.1, 40))
def test_frames_exist_and_suffice(family: Family, rule: str, frames: int, fps: float, target: float | None) -> None:
    sampling = family.complete(Sampling.model_validate({"rule": rule, "fps": target}), family.published)
    indices = family.choose_frames(frames, fps, sampling)
    assert indices == sorted(indices) and indices[0] >= 0 and indices[-1] < frames
    assert frames_to_add(family, len(indices)) == 0
    assert sampling.max_frames is None or len(indices) <= max(sampling.max_frames + 1, family.least_frames)


@families
@given(frames=st.integers(1, 100), width=st.integers(40, 3000), height=st.integers(40, 3000))
def test_prompt_and_layout_agree(family: Family, frames: int, width: int, height: int) -> None:
    sampling = family.complete(Sampling(), family.published)
    frames += frames_to_add(family, frames)
    layout = family.layout(frames, width, height, sampling, family.published)
    spans = family.prompt([i / 2 for i in range(frames)], layout, sampling)
    shown = sum(span.times or 0 for span in spans if span.text == family.vision_word)
    if family.name == "moss_vl":  # one token a frame; pixels and a separator a frame are in the encoder's cache
        assert shown == frames and layout.vision_tokens == frames * (layout.tokens_per_step + 1)
    else:
        assert shown == layout.vision_tokens
    assert all(type(count) is int for count in (layout.vision_tokens, *layout.grid_thw, *layout.size_wh))
    width_out, height_out = layout.size_wh
    patch = family.published["patch_size"]
    assert (width_out // patch, height_out // patch) == layout.grid_thw[:0:-1]
    assert width_out % (patch * layout.merge) == 0 and height_out % (patch * layout.merge) == 0


@families
@given(width=st.integers(40, 3000), height=st.integers(40, 3000))
def test_an_image_has_a_token_for_every_block_of_merged_patches(family: Family, width: int, height: int) -> None:
    if family.abilities.images is None:
        return
    layout = family.abilities.images.layout(width, height, family.published)
    side = family.published["patch_size"] * family.published["merge_size"]
    assert [pixels % side for pixels in layout.size_wh] == [0, 0]
    assert layout.vision_tokens == math.prod(pixels // side for pixels in layout.size_wh)
    assert type(layout.vision_tokens) is int


@pytest.mark.parametrize(
    ("name", "small", "large"),
    [  # from 65,536 to 16,777,216 pixels; from 56 x 56 to 6,177 tokens of 28 x 28
        ("qwen3_vl", (256, 256), (4576, 3648)),
        ("ernie45_vl", (56, 56), (2436, 1960)),
    ],
)
def test_bounds_of_images_are_not_those_of_frames(name: str, small: tuple[int, int], large: tuple[int, int]) -> None:
    images = get_family(name).abilities.images
    assert images is not None
    assert [images.layout(*size, {}).size_wh for size in ((20, 20), (5000, 4000))] == [small, large]


@families
def test_every_option_works_or_is_refused_with_alternatives(family: Family) -> None:
    for rule, options in family.rules.items():
        for option in OPTIONS:
            sampling = Sampling.model_validate({"rule": rule, option: EXAMPLE[option]})
            if option in options:
                assert getattr(family.complete(sampling, family.published), option) == EXAMPLE[option]
            else:
                with pytest.raises(CapabilityError, match=rf"sampling\.{option}.*{rule}.*{family.name}"):
                    family.complete(sampling, family.published)


@families
def test_a_rule_that_it_lacks_is_refused_with_those_it_has(family: Family) -> None:
    for rule in {"vllm", "hf", "native", "ov2_eval"} - family.rules.keys():
        with pytest.raises(CapabilityError, match=", ".join(family.rules)):
            family.complete(Sampling.model_validate({"rule": rule}), family.published)


@families
@given(st.lists(st.floats(0, 1e4), min_size=2, max_size=20))
def test_times_are_told_as_they_are(family: Family, times_s: list[float]) -> None:
    sampling = family.complete(Sampling(), family.published)
    ticks = tuple(round(time_s * 1e6) for time_s in sorted(times_s))
    metadata = family.engine_metadata(FrameClock(ticks, 1e6, ticks[-1] + 1), sampling)
    assert metadata["fps"] > 0
    told = [index / metadata["fps"] for index in metadata["frames_indices"]]
    printed_only = family.name == "llava_onevision2"  # it is told what is printed, tenths
    assert told == pytest.approx(sorted(times_s), abs=0.0501 if printed_only else 1e-5)
    assert family.time_texts(told, sampling) == family.time_texts([tick / 1e6 for tick in ticks], sampling)


def test_texts_are_tokenised_by_themselves() -> None:
    family = get_family("llava_onevision2")
    sampling = family.complete(Sampling(), family.published)
    layout = family.layout(2, 56, 56, sampling, family.published)
    asked: list[str] = []

    def tokenise(text: str) -> list[int]:
        asked.append(text)
        return [1, 2]

    ids = token_ids(family.prompt([0.0, 1.25], layout, sampling), tokenise, lambda _: 9)
    assert asked == ["<0.0 seconds>", "<1.2 seconds>"]
    assert ids == [1, 2, 9, *[9] * layout.tokens_per_step, 9] * 2


def test_ov2_eval_shows_all_frames_at_one_size() -> None:
    family = get_family("llava_onevision2")
    published = family.complete(Sampling(rule="ov2_eval"), family.published)
    assert (published.fps, published.max_frames) == (1.0, 128)
    assert published.min_pixels == published.max_pixels == 392 * 392
    assert len(family.choose_frames(3000, 25.0, published)) == 120
    assert len(family.choose_frames(30_000, 25.0, published)) == 128
    width, height = family.layout(120, 640, 480, published, family.published).size_wh
    assert math.isclose(width * height, 392 * 392, rel_tol=0.1)
    one = family.complete(Sampling(rule="ov2_eval", max_pixels=84_100), family.published)
    assert one.min_pixels == 84_100
    with pytest.raises(CapabilityError, match="one of them"):
        family.complete(Sampling(rule="ov2_eval", min_pixels=1, max_pixels=2), family.published)


def test_moss_vl_shows_a_frame_a_second_and_one_of_a_shorter_clip() -> None:
    family = get_family("moss_vl")
    sampling = family.complete(Sampling(), {})
    assert [len(family.choose_frames(frames, 25.0, sampling)) for frames in (10, 50, 51)] == [1, 2, 3]
    assert family.layout(1, 640, 480, sampling, {}).size_wh == (640, 480)


def test_ernie_numbers_out_of_bounds_are_refused_before_any_clip() -> None:
    with pytest.raises(CapabilityError, match="16 to 180"):
        get_family("ernie45_vl").complete(Sampling(rule="hf", num_frames=8), {})


@families
def test_the_codec_is_refused_where_no_code_reads_it(family: Family) -> None:
    if family.abilities.codec_video:
        assert family.complete(Sampling(video_backend="codec"), family.published).canvases == 32
    else:
        with pytest.raises(CapabilityError, match="video_backend: frames"):
            family.complete(Sampling(video_backend="codec"), family.published)
    with pytest.raises(CapabilityError, match=r"sampling\.canvases 8"):
        family.complete(Sampling(canvases=8), family.published)


def test_codec_settings() -> None:
    family = get_family("llava_onevision2")
    shipped = {"codec": {"target_canvas": 6, "images_per_group": 3, "max_pixels": 50_000}}
    found = family.complete(Sampling(video_backend="codec"), shipped)
    assert (found.canvases, found.max_pixels, found.fps) == (6, 50_000, None)
    asked = Sampling(video_backend="codec", canvases=9, max_pixels=10_000)
    assert family.complete(asked, shipped) == asked
    with pytest.raises(CapabilityError, match="multiple of 3"):
        family.complete(Sampling(video_backend="codec", canvases=8), shipped)
    for option in ({"fps": 2}, {"rule": "ov2_eval"}, {"min_pixels": 9}):  # the codec would ignore them
        sampling = Sampling.model_validate({"video_backend": "codec", **option})
        with pytest.raises(CapabilityError, match="codec_fallback: frames"):
            family.complete(sampling, shipped)
    rule = Sampling(video_backend="codec", codec_fallback="frames", rule="ov2_eval", max_frames=16)
    found = family.complete(rule, shipped)
    assert (found.canvases, found.max_pixels, found.min_pixels, found.max_frames) == (6, 50_000, 50_000, 16)


def test_a_given_bound_moves_the_other() -> None:
    family = get_family("llava_onevision2")
    shipped = {"size": {"shortest_edge": 200_704, "longest_edge": 1_605_632}}
    low = family.complete(Sampling(max_pixels=50_000), shipped)
    assert (low.min_pixels, low.max_pixels) == (50_000, 50_000), "a small frame is not blown up past the asked bound"
    assert family.complete(Sampling(min_pixels=2_000_000), shipped).max_pixels == 2_000_000
    assert family.complete(Sampling(), shipped).min_pixels == 200_704
