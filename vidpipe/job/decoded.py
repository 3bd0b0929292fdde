"""Clips, decoded and prepared a few ahead of the engine, handed over as they come."""

from __future__ import annotations

import traceback
from concurrent import futures
from concurrent.futures import Future
from dataclasses import dataclass

from vidpipe.engine.interface import Preparer
from vidpipe.errors import CapabilityError, EngineError, MediaError
from vidpipe.job.budget import ByteBudget, Place
from vidpipe.job.decoders import Decoders
from vidpipe.job.feed import ShardFeed, Task
from vidpipe.job.prepare import PreparedClip
from vidpipe.job.work import ClipInputs, prepare
from vidpipe.recipe.schema import Recipe
from vidpipe.redact import redact


@dataclass(frozen=True)
class Arrival:
    """A clip that has come through, or why it has not."""

    task: Task
    result: ClipInputs | MediaError
    place: Place
    """To be given back to the budget when the engine has finished the clip."""


@dataclass(frozen=True)
class Unreadable:
    """A clip that cannot be read; its place is given back already."""

    task: Task
    error: MediaError


class Decoded:
    """The feed's clips, a few more than there are workers on the way; true while there are some.

    Args:
        feed: Where clips come from.
        decoders: What decodes them.
        budget: Where they take their places, in the feed's order.
        preparer: Prepares, in this process, those that come decoded only.
        recipe: The run's recipe.
    """

    def __init__(
        self, feed: ShardFeed, decoders: Decoders, budget: ByteBudget, preparer: Preparer, recipe: Recipe
    ) -> None:
        self._feed, self._decoders, self._budget = feed, decoders, budget
        self._preparer, self._recipe = preparer, recipe
        self._on_the_way: dict[Future[PreparedClip | ClipInputs], tuple[Task, Place]] = {}

    def __len__(self) -> int:
        return len(self._on_the_way)

    @property
    def prepares_here(self) -> bool:
        """Whether clips come decoded only, and are prepared as they are taken."""
        return not self._decoders.prepares

    def top_up(self) -> None:
        """Begin to decode further clips, if the feed has any."""
        while len(self._on_the_way) < self._decoders.clips and (task := self._feed.next_task()) is not None:
            place = self._budget.queue()
            self._on_the_way[self._decoders.read(task.clip, place)] = (task, place)

    def add_worker(self) -> None:
        """The engine had to wait: decode with one process more, if the host has room for it."""
        self._decoders.add_worker()

    def next_finished(self) -> Arrival | None:
        """A clip that has come through, if there is one: a long clip does not hold up those behind it.

        Raises:
            EngineError: the engine's preparation does not start.
        """
        future = next((future for future in self._on_the_way if future.done()), None)
        if future is None:
            return None
        task, place = self._on_the_way.pop(future)
        result = self._result(future, task, place)
        if isinstance(result, MediaError):
            self._budget.leave(place)
        return Arrival(task, result, place)

    def next_unreadable(self) -> Unreadable | None:
        """A clip that cannot be read, if one has come through; the others stay."""
        for future, (task, place) in self._on_the_way.items():
            if future.done() and isinstance(error := future.exception(), MediaError):
                del self._on_the_way[future]
                self._budget.leave(place)
                return Unreadable(task, error)
        return None

    @property
    def has_readable(self) -> bool:
        """Whether a clip has come through that an engine may answer."""
        return any(future.done() and not isinstance(future.exception(), MediaError) for future in self._on_the_way)

    def wait(self, timeout_s: float) -> None:
        """Wait until a clip has come through, at most `timeout_s`."""
        futures.wait(self._on_the_way, timeout_s, futures.FIRST_COMPLETED)

    def cancel(self) -> None:
        """Forget the clips that are on the way, and those that the engine has."""
        for future in self._on_the_way:
            future.cancel()
        self._on_the_way.clear()
        self._budget.clear()

    def _result(self, future: Future[PreparedClip | ClipInputs], task: Task, place: Place) -> ClipInputs | MediaError:
        try:
            result = _result_of(future, task)
            if isinstance(result, PreparedClip):
                result = prepare(self._recipe, self._preparer, task.clip, result)
                self._budget.resize(place, result.media_bytes)
            return result
        except MediaError as error:
            return error
        except (EngineError, CapabilityError):  # no clip's fault: it would cost every one
            raise
        except Exception as error:  # a fault of ours must cost this clip, not a run of a million
            print(redact("".join(traceback.format_exception(error))))  # noqa: T201
            return MediaError("corrupt", f"{task.clip.name}: unexpected {type(error).__name__}: {error}")


def _result_of(future: Future[PreparedClip | ClipInputs], task: Task) -> PreparedClip | ClipInputs:
    """What a worker made of a clip.

    Raises:
        EngineError: this process lacked something, such as descriptors; what fails in a worker is a `JobFailedError`.
    """
    try:
        return future.result()
    except OSError as error:
        raise EngineError("engine_start", f"{task.clip.name}: this host does not go on: {error}") from error
