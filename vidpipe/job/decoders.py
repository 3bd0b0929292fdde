"""Worker processes of a run: clips in, what the engine takes out, each within its time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Protocol, TypeVar

from vidpipe.engine.interface import Capabilities, Preparer
from vidpipe.errors import MediaError
from vidpipe.job.budget import ByteBudget, Place
from vidpipe.job.host import cores
from vidpipe.job.prepare import ClipReader, Outlook, PreparedClip
from vidpipe.job.work import ClipInputs, read_and_prepare
from vidpipe.plan.clips import Clip
from vidpipe.recipe.schema import Recipe
from vidpipe.video.channel import JobFailedError
from vidpipe.video.header_cache import keep_headers
from vidpipe.video.pool import KEPT_BYTES, ClipPool, default_time_limit_s

LOOK_LIMIT_S = 30.0
READ_LIMIT_S = 120.0
"""Of a clip that is decoded to see how long that takes."""
MOST_AT_FIRST = 16
"""Each that prepares imports the engine's package: about 7 s of a core, and 1 GB."""
NICENESS = 5
"""Of workers beside an engine on a GPU: a third of the engine's share of a core, should both want the same one."""
WORKERS_A_SPARE = 4
"""So many workers have one clip more than there are of them, for a few may be done within one step of the engine."""
KEPT_SHARE = 0.25
"""Of the budget's bytes: what all workers together may keep for their next clips."""

T = TypeVar("T")


class Pool(Protocol):
    """Child processes, here or elsewhere; see `ClipPool`."""

    def add_worker(self) -> None:
        """One child more."""

    def submit(
        self,
        function: Callable[..., T],
        *args: Any,
        name: str,
        time_limit_s: float,
        first: Callable[[], object] | None = None,
    ) -> Future[T]:
        """Run `function(*args)` in a child."""

    def close(self) -> None:
        """Kill the children."""


class Decoders:
    """Child processes that read clips; a crash or a hang costs one clip.

    Args:
        reader: What the children call.
        workers: Number of processes to begin with.
        most_workers: Number that `add_worker` does not exceed; left out: there will be no more.
        budget: Bounds the bytes of what is read.
        preparer: Prepares in the children too; None: `read` gives decoded clips.
        make_pool: Makes so many children.
    """

    def __init__(
        self,
        reader: ClipReader,
        workers: int,
        budget: ByteBudget,
        preparer: Preparer | None = None,
        most_workers: int | None = None,
        make_pool: Callable[[int], Pool] = ClipPool,
    ) -> None:
        self.workers = workers
        self._most_workers = max(workers, most_workers or 0)
        self._reader, self._budget, self._preparer = reader, budget, preparer
        self._pool = make_pool(workers)
        # One thread a clip: it waits for the look at the header that sets the time limit of the read.
        self._threads = ThreadPoolExecutor(_with_spares(self._most_workers), "decode")

    def __enter__(self) -> Decoders:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._budget.close()
        self._pool.close()
        self._threads.shutdown(cancel_futures=True)

    @property
    def clips(self) -> int:
        """How many to read at a time: a child that is done has the next one's header looked at already."""
        return _with_spares(self.workers)

    @property
    def prepares(self) -> bool:
        """Whether clips are prepared in the children."""
        return self._preparer is not None

    def add_worker(self) -> None:
        """Start one process more, unless there are as many as there may be."""
        if self.workers < self._most_workers:
            self.workers += 1
            self._pool.add_worker()

    def look(self, clip: Clip) -> Outlook:
        """See `ClipReader.look`; waits. Safe to call from threads."""
        return self._pool.submit(self._reader.look, clip, name=clip.name, time_limit_s=LOOK_LIMIT_S).result()

    def look_at(self, clips: Sequence[Clip], *, tell: bool = False) -> list[Outlook | MediaError]:
        """`ClipReader.look` at each of several clips; waits. Safe to call from threads.

        They go to a child together, for handing over one clip costs more than to read its header. When
        something goes wrong that is no file's own error, each is looked at alone, so that it costs one clip.
        """
        try:
            return self._looks(clips, tell)
        except (MediaError, JobFailedError) as error:
            if len(clips) > 1:
                return [outlook for clip in clips for outlook in self.look_at([clip], tell=tell)]
            if isinstance(error, MediaError):
                return [error]
            return [MediaError("corrupt", f"{clips[0].name}: its header cannot be looked at: {error}")]

    def _looks(self, clips: Sequence[Clip], tell: bool) -> list[Outlook | MediaError]:
        job = self._pool.submit(_look_at, self._reader, clips, tell, name=clips[0].name, time_limit_s=LOOK_LIMIT_S)
        return job.result()

    def seconds_to_read(self, clip: Clip) -> float:
        """Seconds of a core that a child takes to decode a clip, whose frames are then forgotten; waits.

        Raises:
            MediaError: the clip cannot be shown.
        """
        return self._pool.submit(
            _seconds_to_read, self._reader, clip, name=clip.name, time_limit_s=READ_LIMIT_S
        ).result()

    def read(self, clip: Clip, place: Place) -> Future[PreparedClip | ClipInputs]:
        """Decode a clip, and prepare it if that is done in the children; see `ClipReader.read`.

        Args:
            clip: The clip.
            place: Its place in the budget's line; entered before the clip is decoded.
        """
        return self._threads.submit(self._read, clip, place)

    def _read(self, clip: Clip, place: Place) -> PreparedClip | ClipInputs:
        try:
            outlook = self.look(clip)
        except BaseException:
            self._budget.leave(place)  # nobody behind it should wait
            raise
        self._budget.enter(place, outlook.media_bytes)
        name = clip.name
        limit_s = self._reader.recipe.media.decode_timeout_s or default_time_limit_s(outlook.duration_s)
        if self._preparer is None:
            decoded = self._pool.submit(self._reader.read, clip, name=name, time_limit_s=limit_s).result()
            self._budget.resize(place, decoded.seen.frame_bytes)
            return decoded
        inputs = self._pool.submit(
            read_and_prepare,
            self._reader,
            self._preparer,
            clip,
            name=name,
            time_limit_s=limit_s,
            first=self._preparer.warm_up,
        ).result()
        self._budget.resize(place, inputs.media_bytes)
        return replace(inputs, transfer_s=time.monotonic() - inputs.done_at_s)


def _with_spares(workers: int) -> int:
    return workers + max(1, workers // WORKERS_A_SPARE)


def _look_at(reader: ClipReader, clips: Sequence[Clip], tell: bool) -> list[Outlook | MediaError]:
    outlooks: list[Outlook | MediaError] = []
    for clip in clips:
        try:
            outlooks.append(reader.look(clip, tell=tell))
        except MediaError as error:
            outlooks.append(error)
    keep_headers()
    return outlooks


def _seconds_to_read(reader: ClipReader, clip: Clip) -> float:
    before_s = time.process_time()  # what others do on this machine meanwhile does not count
    reader.read(clip)
    return time.process_time() - before_s


MakeDecoders = Callable[[ClipReader, Capabilities, ByteBudget, Preparer | None], Decoders]
"""What reads the clips of a run: for a reader, what its engine can do, a budget, and what prepares in the children."""


def local_decoders(
    reader: ClipReader, capabilities: Capabilities, budget: ByteBudget, preparer: Preparer | None
) -> Decoders:
    """Processes on this host."""
    on_gpu = capabilities.prepare_in_workers
    workers = default_workers(reader.recipe, engine_on_gpu=on_gpu)
    most = most_workers(reader.recipe, engine_on_gpu=on_gpu)
    kept_bytes = min(KEPT_BYTES, int(budget.limit * KEPT_SHARE) // most)
    make_pool = partial(ClipPool, kept_bytes=kept_bytes, niceness=NICENESS if on_gpu else 0)
    return Decoders(reader, workers, budget, preparer, most, make_pool)


def default_workers(recipe: Recipe, *, engine_on_gpu: bool = False) -> int:
    """Worker processes to begin with: half of the cores; where the engine computes on a GPU, all but one."""
    if recipe.feed.workers:
        return recipe.feed.workers
    return max(1, min(cores() - 1, MOST_AT_FIRST) if engine_on_gpu else cores() // 2)


def most_workers(recipe: Recipe, *, engine_on_gpu: bool = False) -> int:
    """Worker processes when the engine has had to wait for them; a fixed number stays.

    All cores but one. All where the engine computes on a GPU: they give way to it.
    """
    return recipe.feed.workers or max(1, cores() if engine_on_gpu else cores() - 1)


def prepares_in_workers(recipe: Recipe, capabilities: Capabilities) -> bool:
    """Whether clips go through the model's processor in the worker processes.

    Canvases are decoded there, and decoding belongs into processes that can be killed.
    """
    if recipe.sampling.video_backend == "codec":
        return True
    if recipe.feed.prepare == "auto":
        return capabilities.prepare_in_workers
    return recipe.feed.prepare == "workers"
