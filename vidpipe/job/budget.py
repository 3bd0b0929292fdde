"""Bytes of media in flight, bounded: from before a clip is decoded until the engine has finished its rows.

Clips enter in line, so that a large one is not passed by for ever; one that is larger
than the whole budget enters when nothing else is in. Media lie in memory files of the
kernel, which count against the host's memory and not against the size of /dev/shm.
"""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import CancelledError

from vidpipe.job.host import memory

SHARE_OF_MEMORY = 0.25


class Place:
    """One clip's place in the line and, later, its bytes."""

    nbytes: int | None = None
    """None while it waits."""


class ByteBudget:
    """See the module. Safe to use from threads.

    Args:
        limit: Bytes.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.peak = 0
        """The most bytes that were in at one time."""
        self._line: deque[Place] = deque()
        self._inside: set[Place] = set()
        self._used = 0
        self._closed = False
        self._changed = threading.Condition()

    @property
    def used(self) -> int:
        """Bytes that are in now."""
        return self._used

    def queue(self) -> Place:
        """A place at the end of the line."""
        with self._changed:
            place = Place()
            self._line.append(place)
            return place

    def enter(self, place: Place, nbytes: int) -> None:
        """Wait for the turn of `place` and for `nbytes` to fit.

        Raises:
            CancelledError: the budget was closed, or `clear` took the place.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or place not in self._line or self._fits(place, nbytes))
            if self._closed or place not in self._line:
                raise CancelledError
            self._line.remove(place)
            self._inside.add(place)
            self._set(place, nbytes)

    def resize(self, place: Place, nbytes: int) -> None:
        """Say how many bytes an entered clip really has."""
        with self._changed:
            if place in self._inside:
                self._set(place, nbytes)

    def leave(self, place: Place) -> None:
        """Give the bytes back, or leave the line. Idempotent."""
        with self._changed:
            if place in self._inside:
                self._set(place, 0)
                self._inside.discard(place)
            elif place in self._line:
                self._line.remove(place)
                self._changed.notify_all()

    def clear(self) -> None:
        """Let everyone leave: the clips are not wanted any more."""
        for place in [*self._line, *self._inside]:
            self.leave(place)

    def close(self) -> None:
        """Wake all who wait; nobody enters any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _fits(self, place: Place, nbytes: int) -> bool:
        return self._line[0] is place and (not self._inside or self._used + nbytes <= self.limit)

    def _set(self, place: Place, nbytes: int) -> None:
        self._used += nbytes - (place.nbytes or 0)
        place.nbytes = nbytes
        self.peak = max(self.peak, self._used)
        self._changed.notify_all()


def default_limit() -> int:
    """A quarter of the memory that this process may use, in bytes."""
    return int(memory() * SHARE_OF_MEMORY)
