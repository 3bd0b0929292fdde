"""Every family's control words, planted wherever a manifest has text: the prompt keeps its one video and its turns."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.checkpoints import ernie45_vl, llava_onevision2, minimax_m3
from tests.checkpoints.common import chatml_template, write_tokenizer
from tests.conftest import TINY_MODEL
from vidpipe.engine import torchvision_on_cpu
from vidpipe.engine.prompt import PromptBuilder
from vidpipe.errors import RowError
from vidpipe.manifest.row import Medium, Row
from vidpipe.models import moss_vl
from vidpipe.models.registry import FAMILIES, get_family
from vidpipe.plan.prompts import PromptTemplate, messages_for

CHATML = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>")
MOSS = (*CHATML, moss_vl.SLOT, moss_vl.IMAGE)
OV2_VIDEO, OV2_IMAGE = (f"<|vision_start|><|{kind}_pad|><|vision_end|>" for kind in ("video", "image"))
TOKENIZERS: dict[str, tuple[tuple[str, ...], str]] = {
    "llava_onevision2": (llava_onevision2.CONTROL, chatml_template(OV2_VIDEO, OV2_IMAGE)),
    "minimax_m3": (tuple(minimax_m3.CONTROL), minimax_m3.TEMPLATE),
    "ernie45_vl": (tuple(ernie45_vl.CONTROL), ernie45_vl.TEMPLATE),
    "moss_vl": (tuple(dict.fromkeys(MOSS)), chatml_template(moss_vl.SLOT, moss_vl.IMAGE)),
}
"""Control words and chat template; of `qwen3_vl` there is a checkpoint."""
QWEN = (*CHATML, "<|video_pad|>", "<|image_pad|>")
WORDS = sorted({*QWEN, *(word for control, _ in TOKENIZERS.values() for word in control), "<image>", "</s>", "[INST]"})


@pytest.fixture(scope="module", params=sorted(FAMILIES))
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any]:
    """A family's name and a tokenizer with its words."""
    torchvision_on_cpu.install()
    from transformers import AutoTokenizer

    name: str = request.param
    folder = TINY_MODEL
    if name != "qwen3_vl":
        folder = tmp_path_factory.mktemp(name)
        control, template = TOKENIZERS[name]
        write_tokenizer(folder, control, end=control[0], pad=control[0], template=template)
    return name, AutoTokenizer.from_pretrained(folder)


def ids_of(tokenizer: Any, policy: Any, question: str, options: tuple[str, ...], system: str) -> list[int]:
    row = Row(0, 1, "r", (Medium("video", "v.mp4"),), question=question, options=options, system=system)
    messages = messages_for(row, PromptTemplate(None), None)
    return PromptBuilder(tokenizer, tokenizer.chat_template).token_ids(messages, policy)


def control_ids(tokenizer: Any, ids: list[int]) -> list[int]:
    """The control tokens of a prompt in their order: its turns and media."""
    control = {number for number, token in tokenizer.added_tokens_decoder.items() if token.special}
    return [number for number in ids if number in control]


planted = st.lists(st.sampled_from([*WORDS, "a red ball", "\n", "<|", "|>", "é😀"]), max_size=6).map("".join)


@given(question=planted, options=st.lists(planted, max_size=3).map(tuple), system=planted.map("s".__add__))
def test_one_media_block_and_the_turns_as_they_were(
    family: tuple[str, Any], question: str, options: tuple[str, ...], system: str
) -> None:
    name, tokenizer = family
    ids = ids_of(tokenizer, "literal", question, options, system)
    plain = ids_of(tokenizer, "literal", "What?", tuple("xyz"[: len(options)]), "Be brief.")
    assert control_ids(tokenizer, ids) == control_ids(tokenizer, plain)
    assert ids.count(tokenizer.convert_tokens_to_ids(get_family(name).slot_word)) == 1
    text = tokenizer.decode(ids, skip_special_tokens=False)
    assert all(part in text for part in (question, system, *options)), "nothing of the texts is lost"


def test_they_can_be_refused(family: tuple[str, Any]) -> None:
    name, tokenizer = family
    word = get_family(name).slot_word
    for texts in ((word, (), "s"), ("q", ("a", f"b {word}"), "s"), ("q", (), word)):
        with pytest.raises(RowError) as caught:
            ids_of(tokenizer, "refuse", *texts)
        assert caught.value.kind == "special_token" and word in str(caught.value)
