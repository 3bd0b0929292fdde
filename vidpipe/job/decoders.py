"""Decoder processes of a run: clips in, prepared clips out, each within its time."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from vidpipe.job.prepare import ClipReader, Outlook, PreparedClip
from vidpipe.plan.clips import Clip
from vidpipe.recipe.schema import Recipe
from vidpipe.video.pool import ClipPool, default_time_limit_s

LOOK_LIMIT_S = 30.0


class Decoders:
    """Child processes that read clips; a crash or a hang costs one clip.

    Args:
        reader: What the children call.
        workers: Number of processes.
    """

    def __init__(self, reader: ClipReader, workers: int) -> None:
        self.workers = workers
        self._reader = reader
        self._pool = ClipPool(workers)
        # One thread a child: it waits for the look at the header that sets the time limit of the read.
        self._threads = ThreadPoolExecutor(workers, "decode")

    def __enter__(self) -> Decoders:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.close()
        self._threads.shutdown(cancel_futures=True)

    def look(self, clip: Clip) -> Outlook:
        """See `ClipReader.look`; waits. Safe to call from threads."""
        name = clip.first.row.video
        return self._pool.submit(self._reader.look, clip, name=name, time_limit_s=LOOK_LIMIT_S).result()

    def read(self, clip: Clip) -> Future[PreparedClip]:
        """See `ClipReader.read`."""
        return self._threads.submit(self._read, clip)

    def _read(self, clip: Clip) -> PreparedClip:
        limit_s = self._reader.recipe.media.decode_timeout_s
        if limit_s is None:
            limit_s = default_time_limit_s(self.look(clip).duration_s)
        name = clip.first.row.video
        return self._pool.submit(self._reader.read, clip, name=name, time_limit_s=limit_s).result()


def default_workers(recipe: Recipe) -> int:
    """Decoder processes for a recipe: half of the cores, for the engine needs some too."""
    return recipe.feed.workers or max(1, (os.cpu_count() or 1) // 2)
