"""MiniMax-M3's prompt and pixels by three hands: our rules, vLLM's renderer, transformers' processor and model.

vLLM's own model needs CUDA; `tests/gpu/families.py` runs it there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.checkpoints import minimax_m3, minimax_m3_hf
from tests.conftest import write_clip
from tests.engine.predicted import predicted_ids, read_clip, rendered, told_s, videos_of
from vidpipe.engine import torchvision_on_cpu, vllm_environment
from vidpipe.engine.vllm_prepare import VllmPreparer
from vidpipe.errors import EngineError
from vidpipe.job.prepare import PreparedClip
from vidpipe.models.minimax_m3 import MiniMaxM3
from vidpipe.plan.clips import Clip

pytestmark = pytest.mark.engine

try:
    vllm_environment.installed()
    torchvision_on_cpu.install()
    torchvision_on_cpu.reach_children()  # vLLM inspects the model class in one
except EngineError:
    pytest.skip("vLLM is not installed here", allow_module_level=True)

FAMILY = MiniMaxM3()
SMALL = {"max_pixels": 112 * 112}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("m3")
    minimax_m3.make(folder)
    return folder


@pytest.fixture(scope="module")
def hf_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("m3_hf")
    minimax_m3_hf.make(folder)
    return folder


@pytest.fixture(scope="module")
def preparer(checkpoint: Path) -> VllmPreparer:
    arguments = {
        "model": str(checkpoint),
        "max_model_len": 8192,
        "limit_mm_per_prompt": {"video": 2, "image": 1},
        "enforce_eager": True,
        **FAMILY.abilities.engine_args,
    }
    return VllmPreparer(str(checkpoint), arguments)


def by_transformers(hf_checkpoint: Path, clip: Clip, prepared: PreparedClip) -> Any:
    from transformers import AutoProcessor
    from transformers.video_utils import VideoMetadata

    processor = AutoProcessor.from_pretrained(hf_checkpoint)
    videos = videos_of(prepared)
    keys = ("fps", "total_num_frames", "frames_indices")
    text = processor.tokenizer.apply_chat_template(clip.first.messages, tokenize=False, add_generation_prompt=True)
    sampling = clip.first.settings.sampling
    return processor(
        text=[text],
        videos=[video.pixels for video in videos],
        video_metadata=[VideoMetadata(**{key: video.metadata[key] for key in keys}) for video in videos],
        do_sample_frames=False,
        do_resize=True,  # off in its own defaults
        min_pixels=sampling.min_pixels,
        max_pixels=sampling.max_pixels,
        return_tensors="pt",
    )


@pytest.mark.parametrize(
    ("frames", "rate", "sampling"), [(75, 25, {}), (90, 10, {"fps": 2.0}), (64, 8, {"max_frames": 5}), (3, 30, {})]
)
def test_three_make_the_same_prompt_and_pixels(
    checkpoint: Path,
    hf_checkpoint: Path,
    preparer: VllmPreparer,
    tmp_path: Path,
    frames: int,
    rate: int,
    sampling: dict[str, Any],
) -> None:
    clip, prepared = read_clip(
        checkpoint, FAMILY, write_clip(tmp_path / "clip.mp4", frames, rate, 160, 90), **SMALL, **sampling
    )
    payload = rendered(preparer, clip, prepared)
    made = by_transformers(hf_checkpoint, clip, prepared)
    expected = predicted_ids(checkpoint, FAMILY, clip, prepared, around=0)
    assert payload["prompt_token_ids"] == expected
    assert made["input_ids"][0].tolist() == expected
    (item,) = payload["mm_kwargs"]["video"]
    assert item["video_grid_thw"].data.tolist() == made["video_grid_thw"][0].tolist()
    ours, theirs = item["pixel_values_videos"].data.float(), made["pixel_values_videos"].float()
    assert np.abs(ours.numpy() - theirs.numpy()).max() < 0.02
    assert len(prepared.seen.videos[0].indices) <= (sampling.get("max_frames") or 768)


def test_two_videos_of_a_row(checkpoint: Path, hf_checkpoint: Path, preparer: VllmPreparer, tmp_path: Path) -> None:
    paths = [write_clip(tmp_path / "a.mp4", 75, 25, 160, 90), write_clip(tmp_path / "b.mp4", 40, 8, 64, 48)]
    clip, prepared = read_clip(checkpoint, FAMILY, *paths, **SMALL)
    expected = predicted_ids(checkpoint, FAMILY, clip, prepared, around=0)
    assert rendered(preparer, clip, prepared)["prompt_token_ids"] == expected
    assert by_transformers(hf_checkpoint, clip, prepared)["input_ids"][0].tolist() == expected


@pytest.mark.parametrize("beside", [[], ["clip.mp4"], ["clip.mp4", "clip.mp4"]], ids=len)
def test_an_image_alone_and_before_videos(
    checkpoint: Path, preparer: VllmPreparer, tmp_path: Path, beside: list[str]
) -> None:
    write_clip(tmp_path / "clip.mp4", 75, 25, 160, 90)
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (400, 300, 3), np.uint8)).save(tmp_path / "a.png")
    paths = [tmp_path / "a.png", *(tmp_path / name for name in beside)]
    clip, prepared = read_clip(checkpoint, FAMILY, *paths, **SMALL)
    payload = rendered(preparer, clip, prepared)
    ends = ("]<]start of image[>[", "]<]end of image[>[")
    assert payload["prompt_token_ids"] == predicted_ids(checkpoint, FAMILY, clip, prepared, 0, ends)
    (item,) = payload["mm_kwargs"]["image"]
    _, height, width = item["image_grid_thw"].data.tolist()
    assert [width * 14, height * 14] == prepared.seen.images[0].size_wh


def test_the_prompt_says_the_times_of_the_file(checkpoint: Path, preparer: VllmPreparer, tmp_path: Path) -> None:
    from transformers import PreTrainedTokenizerFast

    clip, prepared = read_clip(checkpoint, FAMILY, write_clip(tmp_path / "clip.mp4", 75, 15), **SMALL, fps=3.0)
    text = PreTrainedTokenizerFast.from_pretrained(checkpoint).decode(
        rendered(preparer, clip, prepared)["prompt_token_ids"]
    )
    assert told_s(videos_of(prepared)[0]) == prepared.seen.videos[0].times_s
    assert [f"]<]{time_s:.1f} seconds[>[" in text for time_s in prepared.seen.videos[0].times_s[::2]] == [True] * 8
    assert text.count(" seconds[>[") == 8


def test_transformers_answers_the_prompt(hf_checkpoint: Path, tmp_path: Path) -> None:
    import torch
    from transformers import MiniMaxM3SparseForConditionalGeneration

    clip, prepared = read_clip(hf_checkpoint, FAMILY, write_clip(tmp_path / "clip.mp4", 75, 25, 160, 90), **SMALL)
    inputs = by_transformers(hf_checkpoint, clip, prepared)
    assert inputs["input_ids"][0].tolist() == predicted_ids(hf_checkpoint, FAMILY, clip, prepared, around=0)
    model = MiniMaxM3SparseForConditionalGeneration.from_pretrained(hf_checkpoint, dtype=torch.bfloat16).eval()
    inputs = {key: value.to(torch.bfloat16) if value.is_floating_point() else value for key, value in inputs.items()}
    answer = model.generate(**inputs, max_new_tokens=4, do_sample=False)
    assert 1 <= answer.shape[1] - inputs["input_ids"].shape[1] <= 4
