"""Worker processes of a run: clips in, what the engine takes out, each within its time."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from vidpipe.engine.interface import Capabilities, Preparer
from vidpipe.job.prepare import ClipReader, Outlook, PreparedClip
from vidpipe.job.work import ClipInputs, read_and_prepare
from vidpipe.plan.clips import Clip
from vidpipe.recipe.schema import Recipe
from vidpipe.video.pool import ClipPool, default_time_limit_s

LOOK_LIMIT_S = 30.0


class Decoders:
    """Child processes that read clips; a crash or a hang costs one clip.

    Args:
        reader: What the children call.
        workers: Number of processes.
        preparer: Prepares in the children too; None: `read` gives decoded clips.
    """

    def __init__(self, reader: ClipReader, workers: int, preparer: Preparer | None = None) -> None:
        self.workers = workers
        self._reader, self._preparer = reader, preparer
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

    def read(self, clip: Clip) -> Future[PreparedClip | ClipInputs]:
        """Decode a clip, and prepare it if that is done in the children; see `ClipReader.read`."""
        return self._threads.submit(self._read, clip)

    def _read(self, clip: Clip) -> PreparedClip | ClipInputs:
        name = clip.first.row.video
        limit_s = self._reader.recipe.media.decode_timeout_s
        if limit_s is None:
            limit_s = default_time_limit_s(self.look(clip).duration_s)
        if self._preparer is None:
            return self._pool.submit(self._reader.read, clip, name=name, time_limit_s=limit_s).result()
        return self._pool.submit(
            read_and_prepare,
            self._reader,
            self._preparer,
            clip,
            name=name,
            time_limit_s=limit_s,
            first=self._preparer.warm_up,
        ).result()


def default_workers(recipe: Recipe) -> int:
    """Worker processes for a recipe: half of the cores, for the engine needs some too."""
    return recipe.feed.workers or max(1, (os.cpu_count() or 1) // 2)


def prepares_in_workers(recipe: Recipe, capabilities: Capabilities) -> bool:
    """Whether clips go through the model's processor in the worker processes."""
    if recipe.feed.prepare == "auto":
        return capabilities.prepare_in_workers
    return recipe.feed.prepare == "workers"
