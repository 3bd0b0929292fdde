"""One decode actor: a child process as `vidpipe run` has them, on whatever node Ray finds a core for.

    engine's process ── job ──▶ actor ── job ──▶ child: look, decode, prepare
                     ◀═ object store ══       ◀═ shared memory ══

The child keeps a crash or a hang in native code to its clip, and the limits in seconds are the same as on one host.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vidpipe.errors import VidpipeError
from vidpipe.video.channel import JobFailedError, dumps
from vidpipe.video.pool import ClipPool


@dataclass(frozen=True)
class DecoderReply:
    """What became of a job."""

    body: bytes
    """A pickle of the result, or of the error."""
    arrays: tuple[npt.NDArray[np.uint8], ...]
    """The memory of its arrays and tensors, which Ray carries without pickling it."""
    failed: bool
    worked_s: float
    """Between the job's arrival and the end of the work on it; what else it took was transfer."""

    def result(self) -> Any:
        """The result, in memory of its own: what lies in Ray's object store cannot be written to, and fills it.

        Raises:
            Exception: what the job raised.
        """
        found = pickle.loads(self.body, buffers=[array.copy() for array in self.arrays])
        if self.failed:
            raise found
        return found


class Decoder:
    """See the module; to be made a Ray actor."""

    def __init__(self) -> None:
        self._pool = ClipPool(1)

    def ready(self) -> None:
        """Return once the actor has its place."""

    def run(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        name: str,
        time_limit_s: float,
        first: Callable[[], object] | None,
    ) -> DecoderReply:
        """See `ClipPool.submit`."""
        began_s = time.monotonic()
        failed = False
        result: Any
        try:
            result = self._pool.submit(function, *args, name=name, time_limit_s=time_limit_s, first=first).result()
        except (VidpipeError, JobFailedError) as error:
            result, failed = error, True
        done_s = getattr(result, "done_at_s", time.monotonic())
        buffers: list[pickle.PickleBuffer] = []
        body = dumps(result, buffers.append)
        arrays = tuple(np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers)
        return DecoderReply(body, arrays, failed, done_s - began_s)
