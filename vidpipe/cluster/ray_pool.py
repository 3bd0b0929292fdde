"""Decode actors on a Ray cluster in the place of child processes on this host.

They belong to the process of one engine: Ray ends them with it, and starts none of them again by itself. A clip
whose actor dies (a lost node, a killed process) goes to another one, so often and no more.

The first one is on the engine's node, on a core that the engine's actor holds for it: engines that had taken the
last cores would wait for decoders, and those for cores, for ever.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from vidpipe.cluster.ray_decoder import Decoder, DecoderReply
from vidpipe.errors import EngineError, MediaError
from vidpipe.job.work import ClipInputs

T = TypeVar("T")


@dataclass
class _Job:
    call: tuple[Any, ...]
    """Arguments of `Decoder.run`."""
    name: str
    future: Future[Any]
    deaths: int = 0
    """Actors that died at it."""


class RayPool:
    """A `job.decoders.Pool`.

    Args:
        workers: Actors to ask for; each takes jobs from when Ray has found it a place on.
        deaths: Actors that may die over one clip.
    """

    def __init__(self, workers: int, deaths: int) -> None:
        self._deaths = deaths
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self._beside = {"num_cpus": 0, "scheduling_strategy": here}
        self._anywhere = {"num_cpus": 1}
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._actors: list[Any] = []
        self._lock = threading.Lock()
        self._closed = False
        self._why = ""
        """Of the last actor that did not start."""
        self._threads: list[threading.Thread] = []
        for _ in range(workers):
            self.add_worker()

    def add_worker(self) -> None:
        """See `Pool.add_worker`."""
        number = len(self._threads)
        place = self._anywhere if number else self._beside
        thread = threading.Thread(target=self._serve, args=(place,), name=f"decode-actor-{number}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def submit(
        self,
        function: Callable[..., T],
        *args: Any,
        name: str,
        time_limit_s: float,
        first: Callable[[], object] | None = None,
    ) -> Future[T]:
        """See `ClipPool.submit`."""
        future: Future[T] = Future()
        self._jobs.put(_Job((function, args, name, time_limit_s, first), name, future))
        return future

    def close(self) -> None:
        """See `Pool.close`."""
        with self._lock:
            self._closed = True
            for actor in self._actors:
                ray.kill(actor)
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _serve(self, place: Mapping[str, Any]) -> None:
        actor = self._start(place)
        while (job := self._jobs.get()) is not None:
            if self._closed:
                self._cancel(job)
                continue
            if not job.deaths and not job.future.set_running_or_notify_cancel():
                continue
            try:
                result = self._run(actor, job)
            except RayTaskError as error:  # a fault of ours in an actor that lives
                job.future.set_exception(error)
            except RayError:
                self._see_death(job)
                actor = self._start(place)
            except BaseException as error:  # it belongs to the waiting caller
                job.future.set_exception(error)
            else:
                job.future.set_result(result)
                del result  # the caller alone decides how long the frames live
            del job

    def _see_death(self, job: _Job) -> None:
        """Leave the job to whichever actor has a place: there may be none for the successor of this one."""
        with self._lock:  # behind `close` nobody would take it
            if self._closed:
                self._cancel(job)
                return
            job.deaths += 1
            if job.deaths < self._deaths:
                self._jobs.put(job)
                return
        message = f"{job.name}: {job.deaths} decode actors died while they read it"
        job.future.set_exception(MediaError("corrupt", message))

    def _cancel(self, job: _Job) -> None:
        if not job.future.cancel():  # it has been begun
            job.future.set_exception(CancelledError("the pool was closed"))

    def _run(self, actor: Any, job: _Job) -> Any:
        if actor is None:
            raise EngineError("engine_start", f"no decode actor starts: {self._why}")
        sent_s = time.monotonic()
        reply: DecoderReply = ray.get(actor.run.remote(*job.call))
        result = reply.result()
        if isinstance(result, ClipInputs):
            # Clocks of two hosts have nothing in common: what was not work was transfer.
            result = replace(result, done_at_s=sent_s + reply.worked_s)
        return result

    def _start(self, place: Mapping[str, Any]) -> Any:
        """An actor that has its place, however long Ray looks for one; None if it does not start."""
        for _ in range(self._deaths):
            with self._lock:
                if self._closed:
                    return None
                actor = ray.remote(Decoder).options(**place, max_restarts=0, max_task_retries=0).remote()
                self._actors.append(actor)
            try:
                ray.get(actor.ready.remote())
            except RayError as error:
                self._why = str(error).strip()
            else:
                return actor
        return None
