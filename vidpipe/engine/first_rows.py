"""Which rows wait until the first one on their clip is computed. Pure.

The rows of a clip begin alike, and an engine's prefix cache gives that to all but the first: but only to those that it
takes in when the first is computed. Given a whole clip at once vLLM may take all of its rows in before, each up to the
video and no further, when its budget for encoders is used up (`v1/core/sched/scheduler.py`,
`_try_schedule_encoder_inputs`); then it computes the clip for every one of them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from vidpipe.engine.interface import EngineInput


@dataclass
class _Clip:
    """A clip with rows in the engine."""

    first: str | None
    """The row that computes it; None once that is done."""
    rows: int = 0
    """In the engine."""
    waiting: list[EngineInput] = field(default_factory=list)


class FirstRows:
    """Lets one row of a clip into the engine, and the others when that is computed.

    Args:
        caching: Whether the engine has a prefix cache; without one all rows enter at once.
    """

    def __init__(self, caching: bool) -> None:
        self._caching = caching
        self._clips: dict[str, _Clip] = {}
        self._clip_of: dict[str, str] = {}

    @property
    def ids(self) -> Collection[str]:
        """Rows that others wait for, or may come to wait for."""
        return [clip.first for clip in self._clips.values() if clip.first is not None]

    def enters(self, row: EngineInput) -> bool:
        """Whether a row may enter now; else it waits."""
        if not self._caching:
            return True
        clip = self._clips.get(row.clip)
        if clip is not None and clip.first is not None:
            clip.waiting.append(row)
            return False
        if clip is None:
            clip = self._clips[row.clip] = _Clip(row.id)
        self._enter(row, clip)
        return True

    def computed(self, first: str) -> list[EngineInput]:
        """The row `first` is computed up to its answer: those that enter now."""
        clip = self._clips[self._clip_of[first]]
        clip.first = None
        ready, clip.waiting = clip.waiting, []
        for row in ready:
            self._enter(row, clip)
        return ready

    def left(self, row_id: str) -> list[EngineInput]:
        """A row has been answered: those that enter now."""
        if row_id not in self._clip_of:
            return []
        ready = self.computed(row_id) if self._clips[self._clip_of[row_id]].first == row_id else []
        self._leave(row_id)
        return ready

    def refused(self, row_id: str) -> list[EngineInput]:
        """The engine would not take a row: those that enter now, of which the first is computed in its stead."""
        if row_id not in self._clip_of:
            return []
        clip = self._clips[self._clip_of[row_id]]
        ready: list[EngineInput] = []
        if clip.first == row_id and clip.waiting:
            ready = [clip.waiting.pop(0)]
            clip.first = ready[0].id
            self._enter(ready[0], clip)
        self._leave(row_id)
        return ready

    def _enter(self, row: EngineInput, clip: _Clip) -> None:
        clip.rows += 1
        self._clip_of[row.id] = row.clip

    def _leave(self, row_id: str) -> None:
        name = self._clip_of.pop(row_id)
        clip = self._clips[name]
        clip.rows -= 1
        if not clip.rows:
            del self._clips[name]
