"""Clips, decoded ahead of the engine by a thread of their own, handed over in order."""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from vidpipe.errors import MediaError
from vidpipe.job.prepare import ClipReader, PreparedClip
from vidpipe.plan.clips import Clip

CLIPS_AHEAD = 2


class Decoded:
    """Clips in order, decoded by one thread a few ahead; true while some are still to come."""

    def __init__(self, clips: Iterable[Clip], reader: ClipReader, executor: ThreadPoolExecutor) -> None:
        self._clips = iter(clips)
        self._reader, self._executor = reader, executor
        self._futures: deque[tuple[Clip, Future[PreparedClip]]] = deque()
        self._top_up()

    def __bool__(self) -> bool:
        return bool(self._futures)

    def next_finished(self) -> tuple[Clip, PreparedClip | MediaError] | None:
        """The next clip in order, if it is decoded."""
        if not self._futures or not self._futures[0][1].done():
            return None
        clip, future = self._futures.popleft()
        self._top_up()
        try:
            return clip, future.result()
        except MediaError as error:
            return clip, error
        except Exception as error:  # a fault of ours must cost this clip, not a run of a million
            traceback.print_exception(error)
            return clip, MediaError("corrupt", f"{clip.first.row.video}: unexpected {type(error).__name__}: {error}")

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

    def _top_up(self) -> None:
        while len(self._futures) < CLIPS_AHEAD and (clip := next(self._clips, None)) is not None:
            self._futures.append((clip, self._executor.submit(self._reader.read, clip)))
