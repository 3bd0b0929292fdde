"""Python's search for garbage, kept from where there is none."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def lasting() -> Iterator[None]:
    """What is made inside, such as modules, lasts as long as its process, with all that is there already.

    Python looks through all objects for garbage each time that a quarter more have come. An engine's package makes
    700,000, one import after the other: without this the searches take a quarter of its import and of the
    engine's start, and each later one 0.3 s of a core.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
