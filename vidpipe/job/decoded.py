"""Clips, decoded a few ahead of the engine, handed over in order."""

from __future__ import annotations

import traceback
from collections import deque
from concurrent.futures import Future

from vidpipe.errors import MediaError
from vidpipe.job.decoders import Decoders
from vidpipe.job.feed import ShardFeed, Task
from vidpipe.job.prepare import PreparedClip


class Decoded:
    """The feed's clips in order, one more than there are decoders on the way; true while there are some."""

    def __init__(self, feed: ShardFeed, decoders: Decoders) -> None:
        self._feed, self._decoders = feed, decoders
        self._futures: deque[tuple[Task, Future[PreparedClip]]] = deque()

    def __bool__(self) -> bool:
        return bool(self._futures)

    def top_up(self) -> None:
        """Begin to decode further clips, if the feed has any."""
        while len(self._futures) <= self._decoders.workers and (task := self._feed.next_task()) is not None:
            self._futures.append((task, self._decoders.read(task.clip)))

    def next_finished(self) -> tuple[Task, PreparedClip | MediaError] | None:
        """The next clip in order, if it is decoded."""
        if not self._futures or not self._futures[0][1].done():
            return None
        task, future = self._futures.popleft()
        try:
            return task, future.result()
        except MediaError as error:
            return task, error
        except Exception as error:  # a fault of ours must cost this clip, not a run of a million
            traceback.print_exception(error)
            name = task.clip.first.row.video
            return task, MediaError("corrupt", f"{name}: unexpected {type(error).__name__}: {error}")

    def wait(self, timeout_s: float) -> None:
        """Wait until the next clip is decoded, at most `timeout_s`."""
        if self._futures:
            try:
                self._futures[0][1].exception(timeout_s)
            except TimeoutError:
                return

    def cancel(self) -> None:
        """Forget the clips that nobody has begun to decode."""
        for _, future in self._futures:
            future.cancel()
        self._futures.clear()
