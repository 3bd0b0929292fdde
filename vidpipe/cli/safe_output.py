"""Standard output and error without secrets, and without words that a terminal would obey.

Names of files, questions and what models answer are printed, and may hold escape sequences: one of them sets the
clipboard, another the title, a third fills the input line. Colours and the few movements of our own display pass.
"""

from __future__ import annotations

import os
import re
import select
import sys
from typing import Any, TextIO, cast

from vidpipe.redact import redact

_OBEYED = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]"
    r"|\x1b(?!\[(?:[0-9;]*m|[0-9]*A|2K|\?25[lh]))"  # colours; up, erase the line, hide and show the cursor
)


class _Safe:
    """A text stream that writes what is left; in all else the stream behind it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(visible(redact(text)))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def visible(text: str) -> str:
    r"""`text` with control characters other than tabs and ends of lines written out: `\x1b`."""
    return _OBEYED.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def safe(stream: TextIO) -> TextIO:
    """The stream, for text that comes from anywhere."""
    return cast(TextIO, _Safe(stream))


def open_closed_streams() -> None:
    """Give standard streams that are closed to nobody: else the next files that are opened would get their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w", closefd=False))  # noqa: SIM115


def nobody_reads() -> bool:
    """Whether the reader of standard output or error has gone."""
    poll = select.poll()
    for number in (1, 2):
        poll.register(number, 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))


def make_output_safe() -> None:
    """From now on this process prints no secrets and commands no terminal."""
    sys.stdout, sys.stderr = safe(sys.stdout), safe(sys.stderr)
