"""Which frames stand in a window of time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from vidpipe.errors import MediaError


def window_of(times_s: npt.NDArray[np.float64], start_s: float | None, end_s: float | None) -> tuple[int, int]:
    """Return the half-open index range of the frames with start_s <= time < end_s.

    `times_s`, [N], never decreases. None leaves an end open. MediaError `bad_window`
    when the window is reversed, not finite, negative (before the first frame, in files
    that start below 0), or holds no frame.
    """
    earliest_s = min(0.0, float(times_s[0]))
    for name, value in (("start", start_s), ("end", end_s)):
        if value is not None and not (np.isfinite(value) and value >= earliest_s):
            raise MediaError("bad_window", f"window {name} {value} s: give a finite number of seconds >= 0")
    if start_s is not None and end_s is not None and end_s <= start_s:
        raise MediaError("bad_window", f"window [{start_s}, {end_s}) s ends before it starts; swap the two")
    # Half a microsecond: 3.3 stands for the frame at 3.3 s, also when its time is 3.3000000000000003.
    first = 0 if start_s is None else int(np.searchsorted(times_s, start_s - 5e-7, side="left"))
    end = len(times_s) if end_s is None else int(np.searchsorted(times_s, end_s - 5e-7, side="left"))
    if end <= first:
        raise MediaError(
            "bad_window",
            f"window [{start_s}, {end_s}) s holds no frame; the file's {len(times_s)} frames are shown"
            f" from {times_s[0]:.3f} to {times_s[-1]:.3f} s",
        )
    return first, end
