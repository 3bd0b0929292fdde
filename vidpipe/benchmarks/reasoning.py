"""Taking a model's reasoning out of its reply: a step of its own, since it changes scores."""

from __future__ import annotations

from collections.abc import Sequence

THINK_TAGS: tuple[tuple[str, str], ...] = (("<think>", "</think>"), ("<reasoning>", "</reasoning>"))


def strip_reasoning(text: str, tags: Sequence[Sequence[str]] = THINK_TAGS) -> str:
    """The reply without tagged reasoning, and without white space around it.

    An opening tag that is never closed stays; of a closing tag alone (a chat template
    may write the opening one into the prompt) what follows it is kept. Tags are
    case-sensitive. Equal to EvolvingLMMs-Lab/lmms-eval @75571cf, lmms_eval/api/reasoning.py,
    strip_reasoning_tags.
    """
    for opening, closing in tags:
        while (start := text.find(opening)) >= 0 and (end := text.find(closing, start)) >= 0:
            text = text[:start] + text[end + len(closing) :]
        if opening not in text and closing in text:
            text = text.rpartition(closing)[2]
    return text.strip()


def is_cut_reasoning(text: str) -> bool:
    """Whether the reply opens a tag of reasoning and never closes it: there is no answer behind it."""
    return any(opening in text and closing not in text for opening, closing in THINK_TAGS)
