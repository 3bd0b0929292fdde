"""Text between frames as vLLM's renderer takes it, by family; Qwen3-VL's answers are in `test_row_kinds.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.checkpoints import llava_onevision2, minimax_m3
from tests.conftest import write_clip
from tests.engine.predicted import QUESTION, read_clip, told_s, videos_of
from vidpipe.engine import torchvision_on_cpu, vllm_environment
from vidpipe.engine.checkpoint import read_checkpoint
from vidpipe.engine.interface import EngineInput, Request
from vidpipe.engine.vllm_prepare import VllmPreparer
from vidpipe.errors import EngineError, RowError
from vidpipe.models.prompt import Span, token_ids
from vidpipe.models.registry import get_family
from vidpipe.recipe.schema import Generation

pytestmark = pytest.mark.engine

try:
    vllm_environment.installed()
    torchvision_on_cpu.install()
    torchvision_on_cpu.reach_children()  # vLLM inspects the model class in one
except EngineError:
    pytest.skip("vLLM is not installed here", allow_module_level=True)

MAKERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "minimax_m3": (minimax_m3.make, "]<]end of image[>["),
    "llava_onevision2": (llava_onevision2.make, "<|vision_end|>"),
}
"""Family -> what makes a checkpoint, and the control word behind the tokens of a frame."""


@pytest.mark.parametrize("name", MAKERS)
def test_texts_stand_behind_their_frames(name: str, tmp_path: Path) -> None:
    from transformers import PreTrainedTokenizerFast

    family, (make, closing) = get_family(name), MAKERS[name]
    assert family.abilities.text_between_frames
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    make(checkpoint)
    clip, prepared = read_clip(
        checkpoint, family, write_clip(tmp_path / "clip.mp4", 75, 25, 160, 90), max_pixels=112 * 112, fps=2.0
    )
    (video,) = videos_of(prepared)
    sampling, (frames, height, width) = clip.first.settings.sampling, video.pixels.shape[:3]
    layout = family.layout(
        frames, width, height, sampling, read_checkpoint(str(checkpoint), Path("/")).processor(family)
    )
    steps = layout.grid_thw[0]
    assert steps > 2
    texts = ("", "subtitle\n0.5 - 1.0 one " + family.vision_word, *[""] * (steps - 3), "subtitle\n2.0 - 3.0 two")
    spans = iter([*family.prompt(told_s(video), layout, sampling)])
    between: list[Span] = []
    for text in texts:
        for span in spans:
            between.append(span)
            if span.text == closing:
                break
        between.append(Span(text))
    between += spans

    preparer = VllmPreparer(
        str(checkpoint),
        {
            "model": str(checkpoint),
            "max_model_len": 8192,
            "limit_mm_per_prompt": {"video": 1, "image": 0},
            "enforce_eager": True,
            "trust_remote_code": True,
            **family.abilities.engine_args,
        },
    )
    asked = [
        Request(f"{n}", clip.first.messages, Generation(), (replace(video, texts_behind=given),), special_tokens=words)  # type: ignore[arg-type]
        for n, (given, words) in enumerate([(texts, "literal"), (texts, "refuse"), (texts[1:], "literal")])
    ]
    made, refused, misfit = (preparer.prepare([request], prepared.identities).inputs[0] for request in asked)
    assert isinstance(made, EngineInput)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(checkpoint)

    def plain(text: str) -> list[int]:
        ids: list[int] = tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        return ids

    ids = made.payload["prompt_token_ids"]
    told = token_ids(between, plain, tokenizer.convert_tokens_to_ids)
    begin = next(n for n in range(len(ids)) if ids[n : n + len(told)] == told)
    assert begin + len(told) < len(ids) and tokenizer.decode(ids).count(QUESTION) == 1
    (place,) = made.payload["mm_placeholders"]["video"]
    vision = tokenizer.convert_tokens_to_ids(family.vision_word)
    span_ids = ids[place.offset : place.offset + place.length]
    assert place.is_embed.tolist() == [token == vision for token in span_ids]
    assert place.get_num_embeds() == ids.count(vision) == layout.vision_tokens
    assert isinstance(refused, RowError) and refused.kind == "special_token"
    assert isinstance(misfit, RowError) and misfit.kind == "bad_value"
