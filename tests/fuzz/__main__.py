"""Try as many random inputs as asked for, new ones each time: `python -m tests.fuzz 100000`."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.inputs import TARGETS


def tried(strategy: st.SearchStrategy[Any], check: Callable[[Any, Path], None], inputs: int, folder: Path) -> int:
    """Number of inputs that were tried; the first that breaks the check ends it, with the smallest like it."""
    count = 0

    @settings(max_examples=inputs, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def run(value: Any) -> None:
        nonlocal count
        count += 1
        check(value, folder)

    run()
    return count


def main(inputs: int) -> None:
    """Share the inputs among the targets."""
    with tempfile.TemporaryDirectory() as folder:
        for name, (strategy, check) in TARGETS.items():
            started = time.monotonic()
            count = tried(strategy, check, -(-inputs // len(TARGETS)), Path(folder))
            print(f"{name}: {count} inputs in {time.monotonic() - started:.0f} s, none broke it", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
