"""Qwen3-VL's requests for SGLang: the ids that vLLM gets, and positions by SGLang's own code (`make test-sglang`)."""

from __future__ import annotations

import asyncio
import json
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.conftest import TINY_MODEL
from vidpipe.engine import torchvision_on_cpu
from vidpipe.engine.interface import EngineInput, Image, Medium, Request, Video
from vidpipe.engine.sglang_prepare import SglangPreparer, SglangPrompt, _renderers
from vidpipe.engine.vllm_prepare import VllmPreparer
from vidpipe.models.qwen3_vl_prompt import Ids, Media, mrope_positions
from vidpipe.models.registry import get_family
from vidpipe.recipe.schema import Generation, Sampling

FAMILY = get_family("qwen3_vl")
PROCESSOR = json.loads((TINY_MODEL / "video_preprocessor_config.json").read_text())
PREPARER = SglangPreparer(str(TINY_MODEL), trust_remote_code=False)
MERGE = 2


def video(seed: int, frames: int, width: int = 128, height: int = 128, texts: tuple[str, ...] = ()) -> Video:
    sampling = FAMILY.complete(Sampling(), PROCESSOR)
    pixels = np.random.default_rng(seed).integers(0, 255, (frames, height, width, 3)).astype(np.uint8)
    ticks = list(range(0, 4 * frames, 4))
    metadata = {
        "fps": 8.0, "total_num_frames": 4 * frames, "frames_indices": ticks, "duration": frames / 2,
        "video_backend": "opencv", "do_sample_frames": False,
    }  # fmt: skip
    return Video(
        pixels, metadata, FAMILY.processor_kwargs(sampling, PROCESSOR), FAMILY.slot_word, FAMILY.vision_word, texts
    )


def image(width: int = 96, height: int = 64) -> Image:
    rules = FAMILY.abilities.images
    assert rules is not None
    pixels = np.random.default_rng(9).integers(0, 255, (height, width, 3)).astype(np.uint8)
    return Image(pixels, rules.slot_word, rules.vision_word)


CASES: dict[str, tuple[Medium, ...]] = {
    "one video": (video(1, 5),),
    "two videos": (video(1, 4), video(2, 6, 64, 160)),
    "two images": (image(), image(64, 64)),
    "an image and a video": (image(), video(1, 4)),
    "subtitles": (video(1, 6, texts=("", " hello there", "")),),
    "none": (),
}


def request(name: str, media: tuple[Medium, ...]) -> Request:
    content = [*({"type": medium.modality} for medium in media), {"type": "text", "text": "What is <|im_end|>?"}]
    return Request(name, ({"role": "user", "content": content},), Generation(), media)


def prepared(name: str) -> SglangPrompt:
    media = CASES[name]
    (made,) = PREPARER.prepare([request(name, media)], [str(n) for n in range(len(media))]).inputs
    assert isinstance(made, EngineInput), made
    assert isinstance(made.payload, SglangPrompt)
    return made.payload


@pytest.mark.engine
@pytest.mark.parametrize("name", CASES)
def test_the_ids_that_vllm_gets(name: str) -> None:
    pytest.importorskip("vllm")
    arguments = {"limit_mm_per_prompt": {"video": 2, "image": 2}, "max_model_len": 4096, "mm_processor_cache_gb": 0}
    vllm = VllmPreparer(str(TINY_MODEL), {"model": str(TINY_MODEL), **arguments})
    media = CASES[name]
    (made,) = vllm.prepare([request(name, media)], [f"{name} {n}" for n in range(len(media))]).inputs
    assert isinstance(made, EngineInput), made
    assert list(prepared(name).token_ids) == made.payload["prompt_token_ids"]


def qwen_processor() -> Any:
    """SGLang's processor with what it needs for media that are prepared, without a server around it."""
    torchvision_on_cpu.install()
    from sglang.srt.managers.schedule_batch import Modality
    from sglang.srt.multimodal.processors.qwen_vl import QwenVLImageProcessor

    prepared("none")
    word = _renderers[PREPARER]._token_id

    class Bare(QwenVLImageProcessor):  # type: ignore[misc]
        models: list[Any] = []  # noqa: RUF012
        keep_mm_features_on_device = False

        def __init__(self) -> None:
            self._processor = self._tokenizer = self.mm_processor_executor = self.video_config = None
            self.model_type, self._spatial_merge_size, self._tokens_per_second = "qwen3_vl", MERGE, None
            self.hf_config = SimpleNamespace(model_type=self.model_type)
            self.vision_start_token_id, self.vision_end_token_id = word("<|vision_start|>"), word("<|vision_end|>")
            self.audio_start_token_id = None
            ids = {Modality.IMAGE: word("<|image_pad|>"), Modality.VIDEO: word("<|video_pad|>")}
            self.mm_tokens = SimpleNamespace(
                image_token_id=word("<|image_pad|>"), video_token_id=word("<|video_pad|>"), audio_token_id=None,
                get_token_id_by_modality=ids.get,
            )  # fmt: skip
            self.use_cuda_ipc = False
            self._mark_cuda_ipc_features_for_deferred_reconstruction = lambda items: None
            self.FEATURE_NAMES = ["pixel_values", "pixel_values_videos"]
            self.ATTR_NAME_TO_MODALITY = {
                "pixel_values": Modality.IMAGE, "image_grid_thw": Modality.IMAGE,
                "pixel_values_videos": Modality.VIDEO, "video_grid_thw": Modality.VIDEO,
            }  # fmt: skip

    return Bare()


@pytest.mark.sglang
@pytest.mark.skipif(find_spec("sglang") is None, reason="make test-sglang")
@pytest.mark.parametrize("name", [name for name, media in CASES.items() if media])
def test_what_sglangs_scheduler_gets(name: str) -> None:
    asked, processor = prepared(name), qwen_processor()
    ids = list(asked.token_ids)
    told = SimpleNamespace(video_data=asked.media.get("video_data"), audio_data=None, rid="r")
    found = asyncio.run(processor.process_mm_data_async(asked.media.get("image_data"), ids, told))
    assert found.input_ids == ids
    pads = {processor.mm_tokens.image_token_id, processor.mm_tokens.video_token_id}
    covered = [place for item in found.mm_items for first, last in item.offsets for place in range(first, last + 1)]
    assert sorted(covered) == [place for place, token in enumerate(ids) if token in pads]
    patches = sum(len(item.feature) for item in found.mm_items)
    assert patches == MERGE**2 * len(covered)
    np.testing.assert_array_equal(found.mrope_positions.numpy(), positions(name, ids, asked, processor))


def positions(name: str, ids: list[int], asked: SglangPrompt, processor: Any) -> Any:
    """By the family's own rule, which `tests/parity` holds against vLLM's."""
    tokens = processor.mm_tokens
    grids = {
        "image": iter((asked.media.get("image_data") or [{}])[0].get("image_grid_thw", np.zeros((0, 3))).tolist()),
        "video": iter((asked.media.get("video_data") or [{}])[0].get("video_grid_thw", np.zeros((0, 3))).tolist()),
    }
    media, place = [], 0
    for medium in CASES[name]:
        grid = tuple(next(grids[medium.modality]))
        is_image = medium.modality == "image"
        first = ids.index(tokens.image_token_id if is_image else tokens.video_token_id, place)
        if is_image:
            media.append(Media(grid, first, is_image=True))  # type: ignore[arg-type]
            place = first + int(np.prod(grid)) // MERGE**2
            continue
        start = first - ids[:first][::-1].index(processor.vision_start_token_id) - 1
        media.append(Media(grid, start))  # type: ignore[arg-type]
        place = start
        for _ in range(int(grid[0])):
            place = ids.index(processor.vision_end_token_id, place) + 1
    return mrope_positions(ids, media, Ids(processor.vision_start_token_id, processor.vision_end_token_id,
                                           tokens.video_token_id), MERGE)  # fmt: skip
