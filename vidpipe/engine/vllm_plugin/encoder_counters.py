"""What the encoder of this process did: plain numbers that the model classes and the graph manager add to.

No counter reads the device. Times are events on its stream, read when somebody asks.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass
class Counters:
    """Since `reset`; the capture's stay."""

    calls: int = 0
    """Of the graph manager."""
    hits: int = 0
    """Items that went through a graph."""
    misses: int = 0
    """Items that the manager ran without one."""
    overruns: int = 0
    """Of the misses, those that upstream would have crashed on or computed wrong."""
    captured_tokens: int = 0
    """Tokens that replays computed."""
    used_tokens: int = 0
    """Of those, tokens that were asked for."""
    missed_tokens: int = 0
    """Tokens of the misses."""
    unpruned_tokens: int = 0
    """Tokens that came to pruning; a clip encoded twice counts twice."""
    kept_tokens: int = 0
    """Tokens that pruning kept of them."""
    capture_s: float = 0.0
    capture_bytes: int = 0
    """Device memory that capturing took."""


_KEPT_BY_RESET = ("capture_s", "capture_bytes")
counters = Counters()
_MOST_PENDING = 1024
_timed: list[Any] = []


def reset() -> None:
    """Forget what the engine did to warm up."""
    for counter in fields(counters):
        if counter.name not in _KEPT_BY_RESET:
            setattr(counters, counter.name, 0)
    _timed.clear()


@contextmanager
def timed() -> Iterator[None]:
    """Count the device's time for what is launched inside; does not wait for it."""
    import torch

    if not torch.cuda.is_available():
        started = time.perf_counter()
        yield
        _timed.append(time.perf_counter() - started)
        return
    if len(_timed) > _MOST_PENDING:
        _timed[:] = [_seconds(_timed)]
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    yield
    end.record()
    _timed.append((begin, end))


def report() -> dict[str, Any]:
    """The counters, and `encoder_s`: seconds of the graph manager's calls. Waits for the device."""
    return {**asdict(counters), "encoder_s": _seconds(_timed)}


def _seconds(entries: list[Any]) -> float:
    total = 0.0
    for entry in entries:
        if isinstance(entry, float):
            total += entry
        else:
            begin, end = entry
            end.synchronize()
            total += begin.elapsed_time(end) / 1000
    return total
