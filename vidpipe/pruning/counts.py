"""How many vision tokens stay. Literal float arithmetic: engines size prompts with it before any token is seen.

Sources: vLLM `multimodal/video_prune/evs.py` and `vidcom2.py`, `compute_retained_tokens_count`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

POSITION_FACTOR = 4
"""A pruned run has rotary tables for so many times `max_model_len` (vLLM `qwen3_vl.mrope_positions_factor`): dropped
tokens leave their positions behind."""


def evs_count(tokens_per_step: int, steps: int, rate: float) -> int:
    """Tokens that EVS keeps of `steps` temporal patches: at least the whole first one.

    `1 - rate` is not exact (1 - 0.9 is 0.0999...), so of 100 tokens 9 stay, not 10.
    """
    return max(tokens_per_step, int(tokens_per_step * steps * (1 - rate)))


def vidcom2_count(tokens_per_step: int, steps: int, rate: float) -> int:
    """Tokens that VidCom2 keeps of `steps` temporal patches: at least one each on average."""
    total = tokens_per_step * steps
    return max(steps, min(int(total * (1.0 - rate)), total))


COUNTS: Mapping[str, Callable[[int, int, float], int]] = {"evs": evs_count, "vidcom2": vidcom2_count}
"""Method -> its count of (tokens per temporal patch, temporal patches, rate)."""


@dataclass(frozen=True)
class TokenAccount:
    """Vision tokens of one clip."""

    asked: int
    """By the family's rule, before pruning."""
    kept: int
    """What the language model gets."""


def positions_taken(prompt_tokens: int, kept: int, steps: int, rows: int, columns: int) -> int:
    """Positions that a prompt with one Qwen3-VL video takes, whatever was dropped; the next token stands there.

    Text takes one position a token, each temporal patch the longer side of its grid.

    Args:
        prompt_tokens: Tokens of the prompt after pruning.
        kept: Vision tokens among them.
        steps: Temporal patches of the video.
        rows: Tokens along its height.
        columns: Tokens along its width.
    """
    return prompt_tokens - kept + steps * max(rows, columns)


def account(tokens_per_step: int, steps: int, method: str | None, rate: float) -> TokenAccount:
    """Tokens asked and kept; without a method all are kept."""
    asked = tokens_per_step * steps
    return TokenAccount(asked, asked if method is None else COUNTS[method](tokens_per_step, steps, rate))
