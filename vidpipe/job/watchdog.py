"""An engine that makes no progress is ended within a time, with a dump of what it was doing.

A hung engine looks like a busy one. The watchdog is a thread, for the main one hangs too:
first it asks that one, by a signal, to leave the call into the engine; if it does not (it
is inside compiled code), the process ends. Rows that are recorded stay either way.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing import active_children
from pathlib import Path
from types import FrameType, TracebackType
from typing import TypeVar

from vidpipe.errors import EngineError

T = TypeVar("T")
GRACE_S = 10.0
"""Between the signal and the end of the process."""
EXIT_CODE = 3
SIGNAL = signal.SIGUSR2


class Watchdog:
    """Watches calls into an engine; to be entered in the main thread.

    Args:
        limit_s: Seconds without progress.
        log: File for the stacks of all threads.
        last_words: Told the message when the process has to be ended.
    """

    def __init__(self, limit_s: float, log: Path, last_words: Callable[[str], None]) -> None:
        self._limit_s, self._log, self._last_words = limit_s, log, last_words
        self._progress_at_s = time.monotonic()
        self._expired = False
        self._inside = False
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def __enter__(self) -> Watchdog:
        self._main = threading.get_ident()
        self._before = signal.signal(SIGNAL, self._leave)
        self.progress()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        signal.signal(SIGNAL, self._before)

    def progress(self) -> None:
        """The engine did something, or has nothing to do."""
        self._progress_at_s = time.monotonic()

    def call(self, function: Callable[..., T], *args: object) -> T:
        """Call into the engine.

        Raises:
            EngineError: `engine_timeout`, when the time is up.
        """
        self._inside = True
        try:
            if self._expired:
                raise EngineError("engine_timeout", self._message)
            return function(*args)
        finally:
            self._inside = False

    @property
    def _message(self) -> str:
        return (
            f"the engine made no progress for {self._limit_s:g} s and was ended; rows that were finished are kept, and "
            "the same command goes on. The stacks of all threads are in its log. Raise retry.engine_timeout_s if the "
            "engine only needs longer."
        )

    def _watch(self) -> None:
        while not self._done.wait(min(1.0, self._limit_s / 10)):
            # Whatever else takes long, like a disk, is not the engine's fault.
            if self._inside and time.monotonic() - self._progress_at_s >= self._limit_s:
                break
        if self._done.is_set():
            return
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"vidpipe: {self._message}\n")
            log.flush()
            faulthandler.dump_traceback(log, all_threads=True)
        self._expired = True
        signal.pthread_kill(self._main, SIGNAL)
        if not self._done.wait(GRACE_S):
            self._last_words(self._message)
            for child in active_children():  # the engine's own
                child.kill()
            os._exit(EXIT_CODE)

    def _leave(self, number: int, frame: FrameType | None) -> None:
        if self._inside and self._expired:
            raise EngineError("engine_timeout", self._message)
