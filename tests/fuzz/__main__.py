"""Try as many random inputs as asked for, new ones each time: `python -m tests.fuzz 100000`."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from hypothesis import HealthCheck, given, settings

from tests.fuzz.inputs import TARGETS


def main(inputs: int) -> None:
    """Share the inputs among the targets; the first that breaks one ends the program with its traceback."""
    share = -(-inputs // len(TARGETS))
    with tempfile.TemporaryDirectory() as folder:
        for name, (strategy, check) in TARGETS.items():
            tried = 0

            @settings(max_examples=share, deadline=None, database=None, suppress_health_check=list(HealthCheck))
            @given(strategy)
            def run(value: object, check=check) -> None:  # type: ignore[no-untyped-def]
                nonlocal tried
                tried += 1
                check(value, Path(folder))

            started = time.monotonic()
            run()
            print(f"{name}: {tried} inputs in {time.monotonic() - started:.0f} s, none broke it", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
