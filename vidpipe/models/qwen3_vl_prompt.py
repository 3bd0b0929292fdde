"""How a Qwen3-VL video lies in the prompt, and the positions of its tokens, whole and pruned.

Source: vLLM `model_executor/models/qwen3_vl.py` (`get_video_repl`, `_iter_mm_grid_hw`,
`_get_mrope_input_positions`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from vidpipe.models.positions import Block, Positions, grid_positions, positions_of
from vidpipe.models.prompt import Span, without_empty

START, VIDEO, END = "<|vision_start|>", "<|video_pad|>", "<|vision_end|>"
IMAGE = "<|image_pad|>"


@dataclass(frozen=True)
class Ids:
    """Ids of the control tokens in one tokenizer."""

    vision_start: int
    vision_end: int
    video: int


def pairs(time_texts: Sequence[str], tokens_per_pair: Sequence[int]) -> list[Span]:
    """The pairs of a video: time text, start, vision tokens, end; without what the chat template puts around them."""
    return without_empty(
        span
        for text, tokens in zip(time_texts, tokens_per_pair, strict=True)
        for span in (Span(text), Span(START, 1), Span(VIDEO, tokens), Span(END, 1))
    )


def lumped(pairs_in_video: int, kept: int) -> list[int]:
    """Tokens per pair that the prompt shows under pruning: all `kept` ones in the first pair.

    Which pair really keeps how many is known only after the encoder has run.
    """
    return [kept, *[0] * (pairs_in_video - 1)]


@dataclass(frozen=True)
class Media:
    """A video or an image in a prompt."""

    grid_thw: tuple[int, int, int]
    """Patches before merging."""
    offset: int
    """Place in the prompt from which its tokens are looked for (an image: its first token)."""
    is_image: bool = False


def mrope_positions(ids: Sequence[int], media: Iterable[Media], control: Ids, merge: int) -> Positions:
    """Positions [3, tokens] of a whole prompt; every pair is a block of its own and time lives in the text only.

    A lumped pair (pruning) is laid out as so many whole grids as it has tokens for, and
    the rest of one. Where a pair has fewer tokens than its grid, upstream gives positions
    for the whole grid all the same, and the result is longer than the prompt; so is this one.
    """
    blocks = (block for item in sorted(media, key=lambda m: m.offset) for block in _blocks(ids, item, control, merge))
    return positions_of(blocks, len(ids))


def _blocks(ids: Sequence[int], item: Media, control: Ids, merge: int) -> Iterator[Block]:
    pairs_in_item, rows, columns = item.grid_thw[0], item.grid_thw[1] // merge, item.grid_thw[2] // merge
    grid = (1, rows, columns)
    if item.is_image:
        yield Block(item.offset, rows * columns, grid_positions([grid]))
        return
    place = item.offset
    for _ in range(pairs_in_item):
        start = ids.index(control.vision_start, place)
        end = ids.index(control.vision_end, start)
        place = end + 1
        if control.video not in ids[start:end]:
            continue  # a pair whose tokens the pruned prompt shows in the first pair
        first = ids.index(control.video, start)
        tokens = end - first
        whole, rest = divmod(tokens, rows * columns)
        if whole == 0:
            yield Block(first, tokens, grid_positions([grid]))
        else:
            local = grid_positions([grid] * (whole + (rest > 0)))
            yield Block(first, tokens, local[:, :tokens])
