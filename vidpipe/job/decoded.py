"""Clips, decoded and prepared a few ahead of the engine, handed over in order."""

from __future__ import annotations

import traceback
from collections import deque
from concurrent.futures import Future

from vidpipe.engine.interface import Preparer
from vidpipe.errors import EngineError, MediaError
from vidpipe.job.decoders import Decoders
from vidpipe.job.feed import ShardFeed, Task
from vidpipe.job.prepare import PreparedClip
from vidpipe.job.work import ClipInputs, prepare
from vidpipe.recipe.schema import Recipe


class Decoded:
    """The feed's clips in order, one more than there are workers on the way; true while there are some.

    Args:
        feed: Where clips come from.
        decoders: What decodes them.
        preparer: Prepares, in this process, those that come decoded only.
        recipe: The run's recipe.
    """

    def __init__(self, feed: ShardFeed, decoders: Decoders, preparer: Preparer, recipe: Recipe) -> None:
        self._feed, self._decoders = feed, decoders
        self._preparer, self._recipe = preparer, recipe
        self._futures: deque[tuple[Task, Future[PreparedClip | ClipInputs]]] = deque()

    def __bool__(self) -> bool:
        return bool(self._futures)

    def top_up(self) -> None:
        """Begin to decode further clips, if the feed has any."""
        while len(self._futures) <= self._decoders.workers and (task := self._feed.next_task()) is not None:
            self._futures.append((task, self._decoders.read(task.clip)))

    def next_finished(self) -> tuple[Task, ClipInputs | MediaError] | None:
        """The next clip in order, if it is there.

        Raises:
            EngineError: the engine's preparation does not start.
        """
        if not self._futures or not self._futures[0][1].done():
            return None
        task, future = self._futures.popleft()
        try:
            result = future.result()
            if isinstance(result, PreparedClip):
                result = prepare(self._recipe, self._preparer, task.clip, result)
            return task, result
        except MediaError as error:
            return task, error
        except EngineError:
            raise
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
