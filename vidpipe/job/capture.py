"""Send what an engine prints to a file, so that a terminal shows the run and not its machinery."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from vidpipe import redact

DRAINED_S = 5.0
"""Longest wait for the last lines."""


@contextmanager
def output_to(path: Path) -> Iterator[None]:
    """Redirect standard output and error of this process and its children to `path` (appended), without secrets.

    On the level of file descriptors: compiled code and child processes print there too. The filter is a process of
    its own: compiled code may print for minutes without letting a thread of this one run. It outlives this process,
    so that the last words before a crash are kept.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(number) for number in (1, 2)]
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    source, target = os.pipe()
    command = [sys.executable, "-I", "-S", redact.__file__]
    # In a process group of its own: Ctrl-C is not for it, it ends with whoever prints.
    filtering = subprocess.Popen(command, stdin=source, stdout=log, process_group=0)
    os.close(source)
    os.close(log)
    try:
        for number in (1, 2):
            os.dup2(target, number)
        os.close(target)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, original in zip((1, 2), kept, strict=True):
            os.dup2(original, number)
            os.close(original)
        with suppress(subprocess.TimeoutExpired):  # a child that still runs may print
            filtering.wait(DRAINED_S)
