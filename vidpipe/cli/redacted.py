"""Standard output and error without secrets, whatever is written to them."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from vidpipe.redact import redact


class _Redacted:
    """A text stream that writes what `redact` leaves; in all else the stream behind it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(redact(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def redact_output() -> None:
    """From now on this process prints no secrets."""
    sys.stdout, sys.stderr = _Redacted(sys.stdout), _Redacted(sys.stderr)
