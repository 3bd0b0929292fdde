"""What stands in a prompt for a video: pieces of text between control tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain


@dataclass(frozen=True)
class Span:
    """A piece of plain text, or one control token some times over."""

    text: str
    """The text, or the control token's own word."""
    times: int | None = None
    """How often the control token stands here; None for plain text."""

    def __str__(self) -> str:
        if self.times is None or self.times == 1:
            return self.text
        return f"{self.text} x {self.times}"


@dataclass(frozen=True)
class Told:
    """A video or image as it stands in a prompt."""

    slot_word: str
    """Control word that the chat template writes in its place."""
    spans: tuple[Span, ...]
    """What stands there in the end."""


def pruned(spans: Iterable[Span], vision_word: str, kept: int) -> list[Span]:
    """`spans` as they stand in a pruned prompt: all tokens that are kept, together in the first place.

    Which place really keeps how many is known only after the encoder has run.
    """
    left = kept
    made = []
    for span in spans:
        if span.text == vision_word and span.times is not None:
            made.append(Span(span.text, left))
            left = 0
        else:
            made.append(span)
    return without_empty(made)


def with_texts_behind(spans: Sequence[Span], vision_word: str, texts: Sequence[str]) -> list[Span]:
    """`spans` with texts behind the places that hold vision tokens and the control words that end these."""
    made: list[Span] = []
    left = list(texts)
    for before, span in zip([None, *spans], spans, strict=False):
        made.append(span)
        if before is not None and before.text == vision_word and before.times and span.times == 1 and left:
            text = left.pop(0)
            made += [Span(text)] if text else []
    return made


def token_ids(
    spans: Iterable[Span], tokenise: Callable[[str], Sequence[int]], control_id: Callable[[str], int]
) -> list[int]:
    """Ids of `spans`, every plain text tokenised by itself.

    By itself, because engines do so too: a time text never merges with what follows it.

    Args:
        spans: The pieces in order.
        tokenise: Ids of a plain text, without special tokens.
        control_id: Id of a control token's word.
    """
    return list(
        chain.from_iterable(
            tokenise(span.text) if span.times is None else [control_id(span.text)] * span.times for span in spans
        )
    )


def without_empty(spans: Iterable[Span]) -> list[Span]:
    """`spans` less the control tokens that stand there no times."""
    return [span for span in spans if span.times != 0]
