"""What to change in a recipe, in one line each, from the numbers of a plan. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vidpipe.wording import counted

ROUND = 1024
"""Contexts are proposed in multiples of so many tokens."""
MUCH = 1.25
"""How much more than needed is worth a line."""


CONTEXT_KEYS = {"vllm": "max_model_len", "fake": "max_model_len", "sglang": "context_length"}
"""Of each engine, the argument that says how many tokens a prompt and its answer may have together."""


def context_advice(
    prompts: Sequence[int], answer_tokens: int, context: int | None, key: str = CONTEXT_KEYS["vllm"]
) -> list[str]:
    """Lines about the context.

    Args:
        prompts: Tokens of each row's prompt.
        answer_tokens: Longest answer.
        context: Tokens that a prompt and its answer may have together; None if nobody says.
        key: What the engine calls that.
    """
    if not prompts:
        return []
    enough = _round_up(max(prompts) + answer_tokens)
    if context is None:
        return [f"{key} {enough} is enough for every row"]
    over = sum(tokens >= context for tokens in prompts)
    if over:
        fits = [tokens for tokens in prompts if tokens < context]
        least = _round_up(max(prompts) + answer_tokens)
        kept = f"; the others fit into {_round_up(max(fits) + answer_tokens)}" if fits else ""
        return [
            f"{over} of {counted(len(prompts), 'row')} {'is' if over == 1 else 'are'} over {key} "
            f"{context}; {least} takes all of them{kept}"
        ]
    cut = sum(tokens + answer_tokens > context for tokens in prompts)
    if cut:
        return [
            f"{counted(cut, 'row leaves', 'rows leave')} less than max_tokens {answer_tokens} for the "
            f"answer; {key} {enough} is enough"
        ]
    if context > MUCH * enough:
        return [f"{key} {enough} is enough (now {context}): more rows run at once"]
    return []


def missing_advice(unreadable: Mapping[str, int], advice: Mapping[str, str]) -> list[str]:
    """A line for each kind of unreadable file.

    Args:
        unreadable: Rows that it costs, by kind.
        advice: What to do about a kind.
    """
    return [f"{counted(rows, 'row')}, {kind}: {advice[kind]}" for kind, rows in unreadable.items() if kind in advice]


def decode_advice(decode_core_s: float, engine_s: float | None, cores: int) -> list[str]:
    """A line where decoding, and not the engine, sets the pace.

    Args:
        decode_core_s: Of all clips.
        engine_s: Of all rows, if that is known.
        cores: Of this machine.
    """
    if engine_s is None or decode_core_s <= engine_s * max(1, cores - 1):
        return []
    needed = -(-decode_core_s // engine_s) + 1
    return [f"decoding takes longer than the engine on these {cores} cores; {needed:.0f} would keep up"]


def _round_up(tokens: int) -> int:
    return -(-tokens // ROUND) * ROUND
