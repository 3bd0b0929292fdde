"""Pure rules on time stamps: fill gaps, tell steady from varying, close jumps."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.float64]


def fill_missing(times_s: Times, step_s: float) -> Times:
    """Return seconds [N] with every NaN replaced.

    Between two stated times the gap is divided evenly; before the first and after
    the last one the frames follow at the median stated step, or `step_s` (seconds,
    from the header) when fewer than two times are stated.
    """
    known = np.flatnonzero(~np.isnan(times_s))
    numbers = np.arange(len(times_s), dtype=np.float64)
    if len(known) == 0:
        return numbers * step_s
    steps = np.diff(times_s[known]) / np.diff(known)
    steps = steps[steps > 0]
    step = float(np.median(steps)) if len(steps) else step_s
    filled = np.interp(numbers, known, times_s[known])
    before, after = numbers < known[0], numbers > known[-1]
    filled[before] = times_s[known[0]] + (numbers[before] - known[0]) * step
    filled[after] = times_s[known[-1]] + (numbers[after] - known[-1]) * step
    return filled


def elapsed(times_s: Times, step_s: float) -> Times:
    """Return seconds since the first frame, [N], never decreasing.

    Where the clock goes back (joined recordings) the next frame follows `step_s`
    after the one before.
    """
    if len(times_s) == 0:
        return times_s
    steps = np.diff(times_s)
    steps = np.where(steps < 0, step_s, steps)
    return np.concatenate(([0.0], np.cumsum(steps)))


def is_variable(elapsed_s: Times, tick_s: float, *, holes: bool) -> bool:
    """Return whether frames [N] (seconds, not decreasing) come at varying distances.

    Rounding to the file's clock (`tick_s` seconds) moves a frame by up to one tick,
    so a step may differ from the median by two; a further 5 % is not worth a word. With
    `holes` some frames are missing, and a step may be a multiple of the median.
    """
    if len(elapsed_s) < 3:
        return False
    steps = np.diff(elapsed_s)
    median = float(np.median(steps))
    if holes and median > 0:
        steps = steps - median * (np.maximum(1, np.round(steps / median)) - 1)
    return bool(np.max(np.abs(steps - median)) > max(2.001 * tick_s, 0.05 * median))
