"""How fast a count grows, so that the end can be foretold. Pure: every call brings its time."""

from __future__ import annotations

from collections import deque

WINDOW_S = 300.0
"""Rates are means over so long: a run begins with its costliest clips, and what was an hour ago tells little."""


class Rate:
    """The mean rate of a count that never falls, over the last `window_s` seconds.

    What passes before it first grows (an engine that loads) does not count.
    """

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._seen: deque[tuple[float, float]] = deque()

    def see(self, now_s: float, count: float) -> None:
        """Take note of the count."""
        if len(self._seen) == 1 and count == self._seen[0][1]:
            self._seen.clear()
        self._seen.append((now_s, count))
        while len(self._seen) > 2 and self._seen[1][0] <= now_s - self._window_s:
            self._seen.popleft()

    @property
    def per_s(self) -> float | None:
        """The rate; None before the count has grown."""
        if len(self._seen) < 2:
            return None
        (first_s, first), (last_s, last) = self._seen[0], self._seen[-1]
        return (last - first) / (last_s - first_s) if last_s > first_s else None

    def seconds_to(self, count: float) -> float | None:
        """How long until the count is `count`, at this rate; None where it does not tell."""
        left = count - self._seen[-1][1] if self._seen else count
        if left <= 0:
            return 0.0
        return left / self.per_s if self.per_s else None
