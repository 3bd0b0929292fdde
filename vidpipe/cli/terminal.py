"""The terminal, kept for ourselves while an engine's output goes to a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from vidpipe.cli.safe_output import safe


@contextmanager
def own_terminal() -> Iterator[TextIO]:
    """A text stream to where standard error goes now; later redirections do not move it."""
    sys.stderr.flush()
    with os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding="utf-8", errors="replace") as stream:
        yield safe(stream)
