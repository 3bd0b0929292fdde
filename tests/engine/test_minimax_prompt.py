"""MiniMax-M3's prompt as vLLM really makes it; needs the files of a checkpoint, but no weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.checkpoints.minimax_m3 import make
from vidpipe.engine import torchvision_on_cpu, vllm_environment
from vidpipe.errors import EngineError
from vidpipe.models.clock import FrameClock
from vidpipe.models.minimax_m3 import VIDEO
from vidpipe.models.prompt import token_ids
from vidpipe.models.registry import get_family
from vidpipe.recipe.schema import Sampling

pytestmark = pytest.mark.engine

try:
    vllm_environment.installed()
    torchvision_on_cpu.install()
    torchvision_on_cpu.reach_children()  # vLLM inspects the model class in one
except EngineError:
    pytest.skip("vLLM is not installed here", allow_module_level=True)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("minimax")
    make(folder)
    return folder


def prompts(checkpoint: Path, **args: Any) -> tuple[list[int], list[int], int]:
    """Ids that vLLM makes of a video, those that the family says, and how many of these are times."""
    from vllm import EngineArgs
    from vllm.renderers import renderer_from_config

    limits = {"video": 1, "image": 0}
    config = EngineArgs(model=str(checkpoint), max_model_len=8192, limit_mm_per_prompt=limits, **args)
    renderer = renderer_from_config(config.create_engine_config())
    tokenizer = renderer.get_tokenizer()
    family = get_family("minimax_m3")
    sampling = family.complete(Sampling(max_pixels=40_000), {})
    clock = FrameClock((0, 8, 16, 25, 33), 8.0, 40)
    pixels = np.zeros((len(clock.ticks), 90, 160, 3), np.uint8)
    item = {
        "prompt": VIDEO,
        "multi_modal_data": {"video": [(pixels, family.engine_metadata(clock, sampling))]},
        "mm_processor_kwargs": family.processor_kwargs(sampling, {}),
    }
    layout = family.layout(len(pixels), 160, 90, sampling, {})
    spans = family.prompt(clock.times_s, layout, sampling)

    def tokenise(text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False)
        return ids

    said = token_ids(spans, tokenise, tokenizer.convert_tokens_to_ids)
    times = sum(len(tokenise(text)) for text in family.time_texts(clock.times_s, sampling))
    return renderer.render_cmpl([item])[0]["prompt_token_ids"], said, times


def test_the_family_says_the_prompt_token_by_token(checkpoint: Path) -> None:
    made, said, _ = prompts(checkpoint, **get_family("minimax_m3").abilities.engine_args)
    assert made == said


def test_vllms_processor_cache_loses_all_times(checkpoint: Path) -> None:
    """Found with vLLM 0.32: items that miss the cache are parsed again, without their metadata."""
    made, said, times = prompts(checkpoint)
    assert len(made) == len(said) - times
