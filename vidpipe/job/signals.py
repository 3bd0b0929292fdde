"""Asked to stop: by Ctrl-C, or by a scheduler shortly before it kills."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SCHEDULERS = (signal.SIGTERM, signal.SIGUSR1)
"""What schedulers send before they kill."""


class Interrupted(KeyboardInterrupt):
    """A signal asked to stop.

    Not `KeyboardInterrupt` itself: CPython remembers one that leaves code run by `PyRun_String`, as extension modules
    do while they are imported, and then dies of SIGINT at its end, whoever caught it (`Python/pythonrun.c`,
    `run_eval_code_obj`).
    """


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Inside, Ctrl-C and a scheduler's signals end what runs where nothing more careful is set up: planning, say.

    Raises:
        Interrupted: one of them came.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Interrupted

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, *SCHEDULERS)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def stop_on_signals() -> Iterator[Callable[[], bool]]:
    """A question "was this run asked to stop?"; the second Ctrl-C stops at once."""
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked and number == signal.SIGINT:
            raise Interrupted
        asked = True

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, *SCHEDULERS)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
