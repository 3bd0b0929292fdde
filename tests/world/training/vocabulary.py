"""The tokenizer of the model: byte-level BPE learnt from the world's own sentences, every digit a token of its own.

Splitting, special tokens and file names are those of Qwen's tokenizers, so transformers and vLLM load it as one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from tests.world.questions import LETTERS, RULES, ask
from tests.world.scene import COLOURS, SHAPES, VELOCITY, World, draw_scene
from tests.world.view import look
from vidpipe.benchmarks.prompts import FRAMES, LETTER, WORD
from vidpipe.models.qwen3_vl_prompt import END, IMAGE, START, VIDEO, Ids

OPEN, CLOSE, PAD = "<|im_start|>", "<|im_end|>", "<|endoftext|>"
SPECIAL = (PAD, OPEN, CLOSE, START, END, "<|vision_pad|>", IMAGE, VIDEO)
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""Qwen2's pre-tokenizer."""
SEED = 5
SCENES = 400
ROUND = 64
"""The embedding's rows are a multiple of this."""


def sentences() -> Iterator[str]:
    """What the tokenizer learns its words from."""
    answers = (*COLOURS, *SHAPES, *VELOCITY, "above", "below", "yes", "no", *LETTERS)
    yield from (*answers, *(f"a {answer}" for answer in answers))
    yield from ("user\n", "assistant\n", "system\n", "<1.0 seconds>", FRAMES, LETTER, WORD)
    rng = random.Random(SEED)
    for _ in range(SCENES):
        view = look(draw_scene(World(test=True), rng))
        for kind in RULES:
            question = ask(view, kind, rng)
            if question is not None:
                yield question.text


def learn() -> Any:
    """The tokenizer (`tokenizers.Tokenizer`); the same each time."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=4000, min_frequency=1, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(sentences(), trainer)
    tokenizer.add_special_tokens([AddedToken(word, special=True, normalized=False) for word in SPECIAL])
    return tokenizer


class Vocabulary:
    """Text to ids, quickly."""

    def __init__(self) -> None:
        self.tokenizer = learn()
        self.rows = -(-self.tokenizer.get_vocab_size() // ROUND) * ROUND
        self.special = {word: self.tokenizer.token_to_id(word) for word in SPECIAL}
        self.control = Ids(self.special[START], self.special[END], self.special[VIDEO])
        self.words = lru_cache(100_000)(self._words)

    def encode(self, text: str) -> list[int]:
        """Ids of `text`, which may hold control tokens."""
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: list[int]) -> str:
        """Text of `ids`, control tokens included."""
        text: str = self.tokenizer.decode(ids, skip_special_tokens=False)
        return text

    def _words(self, text: str) -> tuple[int, ...]:
        return tuple(self.encode(text))
