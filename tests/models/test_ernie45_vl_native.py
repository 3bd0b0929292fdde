"""ERNIE-4.5-VL's own frames against what its own code gave for the same clips (the source stands in the file)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vidpipe.errors import MediaError
from vidpipe.models.ernie45_vl_resize import vllm_resize
from vidpipe.models.ernie45_vl_sampling import native_indices
from vidpipe.models.prompt import Span
from vidpipe.models.registry import get_family
from vidpipe.recipe.schema import Sampling

CASES = json.loads(Path(__file__).with_name("ernie45_vl_native.json").read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['input']['frames']}-{case['input']['fps']:g}")
def test_the_indices_are_upstreams(case: dict[str, Any]) -> None:
    asked = {key: value for key, value in case["input"].items() if value is not None}
    assert native_indices(asked.pop("frames"), asked.pop("fps"), **asked) == case["indices"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['input']['frames']}-{case['input']['fps']:g}")
def test_shown_are_those_made_even_and_no_more_than_the_maximum(case: dict[str, Any]) -> None:
    given, family = case["input"], get_family("ernie45_vl")
    options = {key: given[key] for key in ("num_frames", "min_frames", "max_frames")} | {"fps": given["target_fps"]}
    sampling = family.complete(Sampling.model_validate(options), {})
    shown = family.choose_frames(given["frames"], given["fps"], sampling)
    wanted = case["indices"][: given["max_frames"]]
    assert shown == wanted + wanted[-1:] * (len(wanted) % 2)


def test_a_bound_that_is_set_moves_the_other() -> None:
    family = get_family("ernie45_vl")
    few, many = (
        family.complete(Sampling(**{key: value}), {}) for key, value in (("max_frames", 8), ("min_frames", 200))
    )
    assert (few.min_frames, few.max_frames) == (8, 8)
    assert (many.min_frames, many.max_frames) == (200, 200)


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        ((100, 100), (504, 504)),
        ((1280, 720), (1288, 728)),
        ((1316, 728), (1288, 700)),
        ((1764, 532), (1736, 504)),  # as it is it would have 1197
    ],
)
def test_two_frames_have_299_to_1196_tokens(size: tuple[int, int], shown: tuple[int, int]) -> None:
    """Patches of 14 pixels, 2 x 2 of them and two frames in a token; 1288 x 728 pixels are the most."""
    family = get_family("ernie45_vl")
    sampling = family.complete(Sampling(), {})
    layout = family.layout(2, *size, sampling, {})
    assert layout.size_wh == shown and layout.vision_tokens == shown[0] // 28 * (shown[1] // 28)
    assert 299 <= layout.vision_tokens <= 1196


@pytest.mark.parametrize("bounds", [(1000, 2000), (5000, 6000)])
def test_bounds_between_which_no_size_lies_are_refused(bounds: tuple[int, int]) -> None:
    """20 x 20 pixels grow to 56 x 56 or 84 x 84."""
    with pytest.raises(MediaError, match=f"outside its bounds of {bounds[0]} to {bounds[1]} pixels"):
        vllm_resize(20, 20, factor=28, min_pixels=bounds[0], max_pixels=bounds[1])
    assert vllm_resize(20, 20, factor=28, min_pixels=1000, max_pixels=3136) == (56, 56)


def test_the_tokens_of_a_video_lie_between_one_start_and_one_end() -> None:
    family = get_family("ernie45_vl")
    sampling = family.complete(Sampling(), {})
    layout = family.layout(4, 1280, 720, sampling, {})
    spans = [Span("<|VIDEO_START|>", 1), Span("<|IMAGE_PLACEHOLDER|>", 2 * 1196), Span("<|VIDEO_END|>", 1)]
    assert family.prompt([0.0, 0.5, 1.0, 1.5], layout, sampling) == spans
