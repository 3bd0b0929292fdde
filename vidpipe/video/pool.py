"""Decode in child processes that can be killed: a crash or an endless loop costs one clip, not the run.

Native decoders crash and hang on broken files. Each child does one job at a time
within a time limit; one that dies or overstays is replaced, its job fails with
MediaError `corrupt` or `timeout`, and the others do not notice.
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Any, TypeVar

from vidpipe.errors import EngineError, MediaError
from vidpipe.garbage import lasting
from vidpipe.video import allocator
from vidpipe.video.channel import ChannelClosedError, receive, send

T = TypeVar("T")
KEPT_BYTES = 512 * 2**20
"""Room for 40 frames of 1080p and what a processor makes of them."""
_START_LIMIT_S = 120.0
_FIRST_LIMIT_S = 600.0
_LIMIT_BASE_S = 30.0
_LONGEST_LIMIT_S = 2e6
"""23 days; `poll` takes no more, and a recipe or a header may say more."""


def default_time_limit_s(duration_s: float) -> float:
    """Return the limit for a clip of `duration_s` seconds: half a minute, and as long as the clip plays."""
    return _LIMIT_BASE_S + max(0.0, duration_s)


def _get_ready(first: Callable[[], object]) -> None:
    """Run, in a child, what comes before its jobs."""
    with lasting():
        first()


@dataclass(frozen=True)
class _Job:
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    name: str
    time_limit_s: float
    first: Callable[[], object] | None
    future: Future[Any]


class ClipPool:
    """`workers` child processes; close it, or use it as a context manager.

    A child costs about 0.3 s to start and 100 MB of memory. Results come back as
    they are, their arrays as views of shared memory, freed when no longer used.

    Args:
        workers: Number of children to begin with.
        kept_bytes: Free memory that each keeps for its next job.
        niceness: By how much each gives way to other processes, nice(2).
    """

    def __init__(self, workers: int, *, kept_bytes: int = KEPT_BYTES, niceness: int = 0) -> None:
        assert workers > 0, workers
        self._kept_bytes, self._niceness = kept_bytes, niceness
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._children: set[_Child] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._threads: list[threading.Thread] = []
        for _ in range(workers):
            self.add_worker()

    def __enter__(self) -> ClipPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add_worker(self) -> None:
        """One child more."""
        thread = threading.Thread(target=self._serve, name=f"clip-pool-{len(self._threads)}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def submit(
        self,
        function: Callable[..., T],
        *args: Any,
        name: str,
        time_limit_s: float,
        first: Callable[[], object] | None = None,
        **kwargs: Any,
    ) -> Future[T]:
        """Run `function(*args, **kwargs)` in a child; both must be picklable.

        The future raises what `function` raises, MediaError `corrupt` when the child
        dies, and `timeout` after `time_limit_s` seconds of work (waiting for a free
        child does not count), and EngineError `engine_start` when no child can be made
        ready. `name` stands for the clip in messages. `first` is
        something slow, like imports, that each child runs once, before its first job
        that names it; it has a time limit of its own.
        """
        if self._closed:
            raise RuntimeError("the pool is closed")
        future: Future[T] = Future()
        self._jobs.put(_Job(function, args, kwargs, name, time_limit_s, first, future))
        return future

    def close(self) -> None:
        """Kill the children; jobs that are not done end with CancelledError."""
        with self._lock:
            self._closed = True
            for child in self._children:
                child.kill()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        child: _Child | None = None
        while (job := self._jobs.get()) is not None:
            if self._closed:
                job.future.cancel()
                continue
            if not job.future.set_running_or_notify_cancel():
                continue
            try:
                child = child or self._start()
                child.make_ready(job)
                result = child.run(job)
            except BaseException as error:  # it belongs to the waiting caller
                # Killed by close(): says nothing about the clip.
                job.future.set_exception(CancelledError("the pool was closed") if self._closed else error)
            else:
                job.future.set_result(result)
                del result  # the caller alone decides how long the frames live
            del job
            if child is not None and not child.alive:
                self._drop(child)
                child = None
        if child is not None:
            self._drop(child)

    def _start(self) -> _Child:
        try:
            child = _Child(self._kept_bytes, self._niceness)
        except OSError as error:  # EMFILE, EAGAIN, ENOMEM: no clip's fault
            raise EngineError("engine_start", f"a decoder process cannot be started: {error}") from error
        with self._lock:
            self._children.add(child)
            if self._closed:
                child.kill()
        child.wait_until_ready()
        return child

    def _drop(self, child: _Child) -> None:
        with self._lock:
            self._children.discard(child)
        child.close()


class _Child:
    """One process and the socket to it."""

    def __init__(self, kept_bytes: int, niceness: int) -> None:
        self._channel, theirs = socket.socketpair()
        arguments = map(str, (theirs.fileno(), kept_bytes, niceness))
        # Modules come from where ours do (-P: and never from the folder that we happen to stand in).
        command = [sys.executable, "-P", "-m", "vidpipe.video.worker", *arguments]
        environment = {
            allocator.VARIABLE: allocator.tunables(kept_bytes),
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            # N children already use N cores. Not `torch.set_num_threads`: vLLM sets the number by this variable before
            # each clip, and Slurm scripts set the variable.
            "OMP_NUM_THREADS": "1",
        }
        with theirs:
            # A process group of its own: Ctrl-C in a terminal must not kill it behind our back.
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], process_group=0, env=environment)
        self.alive = True
        self._is_ready = False

    def wait_until_ready(self) -> None:
        try:
            self._receive(time.monotonic() + _START_LIMIT_S)
        except (ChannelClosedError, TimeoutError):
            self.close()
            raise EngineError(
                "engine_start", "a decoder process does not start; `python -c 'import vidpipe.video.worker'` says why"
            ) from None

    def make_ready(self, job: _Job) -> None:
        """Run what comes before the job, if this child has not yet."""
        if job.first is None or self._is_ready:
            return
        try:
            send(self._channel, (_get_ready, (job.first,), {}))
            done, result = self._receive(time.monotonic() + _FIRST_LIMIT_S)
        except (TimeoutError, ChannelClosedError, BrokenPipeError, ConnectionResetError) as error:
            self.close()
            message = f"a worker process does not get ready: {type(error).__name__}"
            raise EngineError("engine_start", message) from error
        if not done:
            raise result
        self._is_ready = True

    def run(self, job: _Job) -> Any:
        deadline = time.monotonic() + min(job.time_limit_s, _LONGEST_LIMIT_S)
        try:
            send(self._channel, (job.function, job.args, job.kwargs))
            done, result = self._receive(deadline)
        except TimeoutError:
            self.close()
            raise MediaError(
                "timeout",
                f"{job.name}: not decoded within {job.time_limit_s:g} s; raise `media.decode_timeout_s`"
                " if the file is sound",
            ) from None
        except (ChannelClosedError, BrokenPipeError, ConnectionResetError):
            self.close()
            raise MediaError("corrupt", f"{job.name}: the decoder process {self._how_it_ended()}") from None
        if done:
            return result
        raise result

    def kill(self) -> None:
        """Kill the child and what it has started: it leads a process group of its own."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        self.alive = False
        if self._process.returncode is None:  # once waited for, its number may be another's
            self.kill()
        self._process.wait()
        self._channel.close()

    def _receive(self, deadline: float) -> Any:
        poll = select.poll()  # not `select`, which takes no descriptor beyond 1023
        poll.register(self._channel, select.POLLIN)
        if not poll.poll(1000 * max(0.0, deadline - time.monotonic())):
            raise TimeoutError
        return receive(self._channel)

    def _how_it_ended(self) -> str:
        code = self._process.returncode
        if code >= 0:
            return f"ended with exit code {code}"
        return f"was ended by {signal.Signals(-code).name}"
