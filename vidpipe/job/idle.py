"""Seconds in which the engine had nothing to do, and why. Pure: every call brings its time.

A stretch without work ends when a clip reaches the engine. What that clip did last explains
the end of the stretch: the transfer, before that the preparation, before that the
decoding; what is left before these was waiting for a worker, which counts as decoding.
"""

from __future__ import annotations

from typing import Literal, get_args

Cause = Literal["start", "decode", "prepare", "transfer", "tail"]
"""`start`: the engine was loading. `tail`: no clip was left to take (others may have held some)."""


class IdleClock:
    """Accounts for the time of one engine.

    Args:
        now_s: When the engine began to start.
    """

    def __init__(self, now_s: float) -> None:
        self.idle_s: dict[str, float] = dict.fromkeys(get_args(Cause), 0.0)
        self._began_s = now_s
        self._is_up = False
        self._since_s: float | None = now_s
        self._nothing_until_s = now_s

    def started(self, now_s: float) -> None:
        """The engine is up."""
        assert self._since_s is not None
        self._is_up = True
        self.idle_s["start"] += now_s - self._since_s
        self._since_s = self._nothing_until_s = now_s

    def emptied(self, now_s: float) -> None:
        """The engine has no request any more. Does nothing where that is known."""
        if self._since_s is None:
            self._since_s = self._nothing_until_s = now_s

    def nothing_to_take(self, now_s: float) -> None:
        """The engine is empty, and no clip is on its way."""
        self._nothing_until_s = now_s

    def filled(self, now_s: float, *, prepare_s: float, transfer_s: float) -> float:
        """A request went to the engine; the seconds are those of its clip.

        Returns the seconds for which the engine has just waited for decoding and preparation.
        """
        if self._since_s is None:
            return 0.0
        tail_s = min(max(0.0, self._nothing_until_s - self._since_s), now_s - self._since_s)
        waited_s = left_s = now_s - self._since_s - tail_s
        self.idle_s["tail"] += tail_s
        stages: tuple[tuple[Cause, float], ...] = (("transfer", transfer_s), ("prepare", prepare_s))
        for cause, seconds in stages:
            part_s = min(max(0.0, seconds), left_s)
            self.idle_s[cause] += part_s
            left_s -= part_s
        self.idle_s["decode"] += left_s
        self._since_s = None
        return waited_s

    def elapsed_s(self, now_s: float) -> float:
        """Seconds since the engine began to start."""
        return now_s - self._began_s

    def so_far(self, now_s: float) -> dict[str, float]:
        """The seconds by cause, also of a stretch that goes on: what ends it is not known yet, so decoding."""
        idle_s = dict(self.idle_s)
        since_s = self._since_s
        if since_s is None:
            return idle_s
        if not self._is_up:
            return idle_s | {"start": idle_s["start"] + now_s - since_s}
        tail_s = min(max(0.0, self._nothing_until_s - since_s), now_s - since_s)
        left_s = now_s - since_s - tail_s
        return idle_s | {"tail": idle_s["tail"] + tail_s, "decode": idle_s["decode"] + left_s}

    def ended(self, now_s: float) -> float:
        """The run is over; returns how long it took, from the start of the engine on."""
        if self._since_s is not None:
            self.idle_s["tail" if self._is_up else "start"] += now_s - self._since_s
            self._since_s = now_s
        return now_s - self._began_s
