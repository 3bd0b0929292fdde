"""MiniMax-M3's prompt and pixels by three hands: our rules, vLLM's renderer, transformers' processor and model.

vLLM's own model needs CUDA; `tests/gpu/families.py` runs it there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.checkpoints import minimax_m3, minimax_m3_hf
from tests.conftest import write_clip
from vidpipe.engine import torchvision_on_cpu, vllm_environment
from vidpipe.engine.checkpoint import read_checkpoint
from vidpipe.engine.interface import EngineInput, Request
from vidpipe.engine.prompt import PromptBuilder
from vidpipe.engine.vllm_prepare import VllmPreparer
from vidpipe.errors import EngineError
from vidpipe.job.prepare import ClipReader, PreparedClip
from vidpipe.manifest.row import Row
from vidpipe.models.minimax_m3 import MiniMaxM3
from vidpipe.models.prompt import token_ids
from vidpipe.plan.clips import Clip, make_plan
from vidpipe.recipe.schema import Generation, Recipe

pytestmark = pytest.mark.engine

try:
    vllm_environment.installed()
    torchvision_on_cpu.install()
    torchvision_on_cpu.reach_children()  # vLLM inspects the model class in one
except EngineError:
    pytest.skip("vLLM is not installed here", allow_module_level=True)

FAMILY = MiniMaxM3()
QUESTION = "The question is: what happens after 3 seconds?"


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
        "limit_mm_per_prompt": {"video": 1, "image": 0},
        "enforce_eager": True,
        **FAMILY.abilities.engine_args,
    }
    return VllmPreparer(str(checkpoint), arguments)


def read_clip(checkpoint: Path, path: Path, **sampling: Any) -> tuple[Clip, PreparedClip]:
    values = {"manifest": "m", "model": {"path": str(checkpoint)}, "sampling": {"max_pixels": 112 * 112, **sampling}}
    recipe, processor = Recipe.model_validate(values), read_checkpoint(str(checkpoint), Path("/")).processor(FAMILY)
    row = Row(index=0, line=1, id="r", video=str(path), question=QUESTION)
    clip = make_plan([row], recipe, FAMILY, processor).clips[0]
    return clip, ClipReader(recipe, FAMILY, processor, path.parent, allow_outside_root=True).read(clip)


def predicted_ids(checkpoint: Path, clip: Clip, prepared: PreparedClip) -> list[int]:
    """The prompt that the template and the family's rules say."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast.from_pretrained(checkpoint)
    ids = PromptBuilder(tokenizer, tokenizer.chat_template).token_ids(clip.first.messages, "literal")
    sampling, pixels = clip.first.settings.sampling, prepared.video.pixels
    layout = FAMILY.layout(len(pixels), pixels.shape[2], pixels.shape[1], sampling, {})
    video = token_ids(
        FAMILY.prompt(told_s(prepared), layout, sampling),
        lambda text: tokenizer.encode(text, add_special_tokens=False),
        tokenizer.convert_tokens_to_ids,
    )
    place = ids.index(tokenizer.convert_tokens_to_ids(FAMILY.slot_word))
    return [*ids[:place], *video, *ids[place + 1 :]]


def told_s(prepared: PreparedClip) -> list[float]:
    metadata = prepared.video.metadata
    return [index / metadata["fps"] for index in metadata["frames_indices"]]


def by_vllm(preparer: VllmPreparer, clip: Clip, prepared: PreparedClip) -> dict[str, Any]:
    asked = Request("r", clip.first.messages, Generation(), prepared.video)
    (made,) = preparer.prepare([asked], prepared.seen.frames.sha).inputs
    assert isinstance(made, EngineInput), made
    return dict(made.payload)


def by_transformers(hf_checkpoint: Path, clip: Clip, prepared: PreparedClip) -> Any:
    from transformers import AutoProcessor
    from transformers.video_utils import VideoMetadata

    processor = AutoProcessor.from_pretrained(hf_checkpoint)
    metadata = {key: prepared.video.metadata[key] for key in ("fps", "total_num_frames", "frames_indices")}
    text = processor.tokenizer.apply_chat_template(clip.first.messages, tokenize=False, add_generation_prompt=True)
    sampling = clip.first.settings.sampling
    return processor(
        text=[text],
        videos=[prepared.video.pixels],
        video_metadata=[VideoMetadata(**metadata)],
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
    clip, prepared = read_clip(checkpoint, write_clip(tmp_path / "clip.mp4", frames, rate, 160, 90), **sampling)
    payload = by_vllm(preparer, clip, prepared)
    made = by_transformers(hf_checkpoint, clip, prepared)
    expected = predicted_ids(checkpoint, clip, prepared)
    assert payload["prompt_token_ids"] == expected
    assert made["input_ids"][0].tolist() == expected
    (item,) = payload["mm_kwargs"]["video"]
    assert item["video_grid_thw"].data.tolist() == made["video_grid_thw"][0].tolist()
    ours, theirs = item["pixel_values_videos"].data.float(), made["pixel_values_videos"].float()
    assert np.abs(ours.numpy() - theirs.numpy()).max() < 0.02
    assert len(prepared.seen.frames.indices) <= (sampling.get("max_frames") or 768)


def test_the_prompt_says_the_times_of_the_file(checkpoint: Path, preparer: VllmPreparer, tmp_path: Path) -> None:
    from transformers import PreTrainedTokenizerFast

    clip, prepared = read_clip(checkpoint, write_clip(tmp_path / "clip.mp4", 75, 15), fps=3.0)
    text = PreTrainedTokenizerFast.from_pretrained(checkpoint).decode(
        by_vllm(preparer, clip, prepared)["prompt_token_ids"]
    )
    assert told_s(prepared) == prepared.seen.frames.times_s
    assert [f"]<]{time_s:.1f} seconds[>[" in text for time_s in prepared.seen.frames.times_s[::2]] == [True] * 8
    assert text.count(" seconds[>[") == 8


def test_transformers_answers_the_prompt(hf_checkpoint: Path, tmp_path: Path) -> None:
    import torch
    from transformers import MiniMaxM3SparseForConditionalGeneration

    clip, prepared = read_clip(hf_checkpoint, write_clip(tmp_path / "clip.mp4", 75, 25, 160, 90))
    inputs = by_transformers(hf_checkpoint, clip, prepared)
    assert inputs["input_ids"][0].tolist() == predicted_ids(hf_checkpoint, clip, prepared)
    model = MiniMaxM3SparseForConditionalGeneration.from_pretrained(hf_checkpoint, dtype=torch.bfloat16).eval()
    inputs = {key: value.to(torch.bfloat16) if value.is_floating_point() else value for key, value in inputs.items()}
    answer = model.generate(**inputs, max_new_tokens=4, do_sample=False)
    assert 1 <= answer.shape[1] - inputs["input_ids"].shape[1] <= 4
