"""How many videos the encoder takes at once in a run that prunes. Pure.

The scheduler counts tokens after pruning, so at a rate of 0.75 a step may hold four times the
tokens for which memory was measured at the start. vLLM's V1 runner encodes pruned videos one by
one for that reason; its V2 runner takes all of a step together.
"""

from __future__ import annotations

from collections.abc import Sequence


def batches(sizes: Sequence[int], limit: int) -> list[range]:
    """Consecutive items whose sizes sum to at most `limit`; a larger item goes alone.

    Args:
        sizes: Tokens of each item before pruning.
        limit: Tokens that memory was measured for.
    """
    found: list[range] = []
    first = total = 0
    for place, size in enumerate(sizes):
        if place > first and total + size > limit:
            found.append(range(first, place))
            first, total = place, 0
        total += size
    if sizes:
        found.append(range(first, len(sizes)))
    return found
