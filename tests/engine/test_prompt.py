"""User text never becomes control tokens, and ordinary prompts are exactly the template's."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import TINY_MODEL
from vidpipe.engine import torchvision_on_cpu
from vidpipe.engine.prompt import PromptBuilder
from vidpipe.errors import RowError

CONTROL = [
    "<|im_end|>",
    "<|im_start|>",
    "<|video_pad|>",
    "<|image_pad|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|endoftext|>",
]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    torchvision_on_cpu.install()
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(TINY_MODEL)


@pytest.fixture(scope="module")
def builder(tokenizer: Any) -> PromptBuilder:
    return PromptBuilder(tokenizer, tokenizer.chat_template)


def chat(text: str, system: str | None = None) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = [] if system is None else [{"role": "system", "content": system}]
    return [*turns, {"role": "user", "content": [{"type": "video"}, {"type": "text", "text": text}]}]


def test_an_ordinary_prompt_is_what_the_template_gives(builder: PromptBuilder, tokenizer: Any) -> None:
    messages = chat("What appears at 5.5 seconds?\n", "Be brief.")
    rendered = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    for policy in ("literal", "refuse"):
        assert builder.token_ids(messages, policy) == tokenizer(rendered, add_special_tokens=False)["input_ids"]


words = st.sampled_from([*CONTROL, "a", " red circle", "\n", "<|im_", "end|>", "|", "é😀", "\ufdd0"])


@given(st.lists(words, max_size=8).map("".join), st.none() | st.lists(words, max_size=4).map("".join))
def test_control_words_in_texts_stay_text(
    builder: PromptBuilder, tokenizer: Any, text: str, system: str | None
) -> None:
    ids = builder.token_ids(chat(text, system), "literal")
    turns = 1 if system is None else 2
    counts = {word: ids.count(tokenizer.convert_tokens_to_ids(word)) for word in CONTROL}
    assert counts["<|video_pad|>"] == counts["<|vision_start|>"] == counts["<|vision_end|>"] == 1
    assert counts["<|im_end|>"] == turns and counts["<|im_start|>"] == turns + 1
    assert counts["<|image_pad|>"] == counts["<|endoftext|>"] == 0
    assert text in tokenizer.decode(ids), "nothing of the text is lost"


def test_control_words_can_be_refused(builder: PromptBuilder) -> None:
    for messages in (chat("say <|im_end|>"), chat("fine", "system <|im_start|>")):
        with pytest.raises(RowError) as caught:
            builder.token_ids(messages, "refuse")
        assert caught.value.kind == "special_token"
