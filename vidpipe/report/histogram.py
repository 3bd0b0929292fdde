"""Counts of values in bins of equal width, for the terminal and for the page. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

MOST_BINS = 16
BLOCKS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Histogram:
    """Bin n holds values from `low + n * width` on, up to the next bin's; the last one also its upper end."""

    low: float
    width: float
    counts: tuple[int, ...]
    median: float
    most: float
    """The largest value."""

    @property
    def high(self) -> float:
        """Upper end of the last bin."""
        return self.low + self.width * len(self.counts)

    @property
    def total(self) -> int:
        """Number of values."""
        return sum(self.counts)

    def line(self) -> str:
        """One character a bin: its height against the fullest one; any value shows."""
        fullest = max(self.counts)
        return "".join(BLOCKS[-(-count * (len(BLOCKS) - 1) // fullest)] for count in self.counts)


def histogram(values: Iterable[float], most_bins: int = MOST_BINS) -> Histogram | None:
    """The histogram of finite values; None without any.

    Bins are as wide as 1, 2 or 5 times a power of ten, and begin at a multiple of that, so that their ends can be read.
    """
    found = sorted(value for value in values if math.isfinite(value))
    if not found:
        return None
    low, high = found[0], found[-1]
    width = _round_width((high - low) / most_bins, whole=all(value == int(value) for value in found))
    first = math.floor(low / width)
    bins = max(1, math.floor(high / width) - first + 1)
    counts = [0] * bins
    for value in found:
        counts[min(bins - 1, max(0, math.floor(value / width) - first))] += 1
    return Histogram(first * width, width, tuple(counts), found[len(found) // 2], high)


def _round_width(least: float, *, whole: bool) -> float:
    """The smallest readable width that is at least `least`; whole numbers get whole ones."""
    if least <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(least))
    width = next(power * step for step in (1, 2, 5, 10) if power * step >= least * (1 - 1e-9))
    return max(1.0, width) if whole else width
