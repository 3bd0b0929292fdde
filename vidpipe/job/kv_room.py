"""Which rows fit into the engine's KV cache together. Pure.

Rows of a clip share the part of their prompts that ends with the media, so a further row
on a clip that is in the engine takes its own text and its answer only. More clips than the cache holds would
push each other's shared parts out before their rows have come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable


class KvRoom:
    """Counts the tokens in the engine.

    Args:
        tokens: What the cache holds; None: without a bound.
    """

    def __init__(self, tokens: int | None) -> None:
        self._limit = tokens
        self._used = 0
        self._rows: Counter[Hashable] = Counter()

    def fits(self, clip: Hashable, own: int, shared: int) -> bool:
        """Whether a row fits; one that is too large for the whole cache does when nothing else is in.

        Args:
            clip: Names what the row's clip shares with others.
            own: Tokens of the row that no other has, its answer included.
            shared: Tokens that all rows of the clip share.
        """
        needed = own + (0 if self._rows[clip] else shared)
        return self._limit is None or not self._used or self._used + needed <= self._limit

    def enter(self, clip: Hashable, own: int, shared: int) -> None:
        """A row goes to the engine."""
        self._used += own + (0 if self._rows[clip] else shared)
        self._rows[clip] += 1

    def leave(self, clip: Hashable, own: int, shared: int) -> None:
        """A row, entered with the same values, has come back."""
        self._rows[clip] -= 1
        if not self._rows[clip]:
            del self._rows[clip]
        self._used -= own + (0 if clip in self._rows else shared)
