"""The tokenizer of the vectors: one id a character; and run-length coding of ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from vidpipe.models.qwen3_vl_prompt import END, START, VIDEO, Ids

DEFAULT_IDS = {"vision_start": 9001, "vision_end": 9002, "video": 9003, "image": 9004}


def tokenise(text: str) -> list[int]:
    """1000 and the character's number, for each."""
    return [1000 + ord(character) for character in text]


def control(ids: Mapping[str, int]) -> Ids:
    """The control tokens that a vector names."""
    return Ids(ids["vision_start"], ids["vision_end"], ids["video"])


def word_ids(ids: Ids) -> dict[str, int]:
    """Control word -> id."""
    return {START: ids.vision_start, END: ids.vision_end, VIDEO: ids.video}


def run_lengths(ids: Iterable[int]) -> list[list[int]]:
    """[[id, how often], ...]."""
    return [[token, sum(1 for _ in run)] for token, run in groupby(ids)]


def unrolled(runs: Sequence[Sequence[int]]) -> list[int]:
    """The ids of `run_lengths`."""
    return [token for token, times in runs for _ in range(times)]
