"""From the times that frames have to the numbers that an engine is told.

vLLM and Hugging Face know no times: they are told indices and a rate, and compute
index / rate. On a constant-rate file we tell them the file's own indices and rate, so
that prompts equal upstream's to the last digit. On any other file index / rate is
wrong (by seconds on screen recordings), so they are told microseconds instead: an
"index" of 2,533,333 at a "rate" of 1,000,000.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

MICROSECONDS_PER_S = 1_000_000
SAME_TIME_S = 0.001
"""Matroska and FLV round times to a millisecond; a difference that small is no other rate."""


@dataclass(frozen=True)
class FrameClock:
    """Times of frames, as whole ticks of a rate: frame i is shown at ticks[i] / rate seconds."""

    ticks: tuple[int, ...]
    rate: float
    total: int
    """Ticks of the whole clip; above every element of `ticks`."""

    @property
    def times_s(self) -> list[float]:
        """The times in seconds, computed as upstream computes them."""
        return [tick / self.rate for tick in self.ticks]


def clock_of(
    indices: Sequence[int],
    times_s: Sequence[float],
    *,
    first_index: int,
    frames: int,
    fps: float,
    zero_s: float,
    time_base: Literal["real", "nominal"],
) -> FrameClock:
    """The clock for frames `indices` of a file, shown at `times_s`.

    Args:
        indices: Frame numbers in the file.
        times_s: Their presentation times in the file, in seconds.
        first_index: Number of the first frame of the clip (0 for a whole file).
        frames: Frames that the clip has.
        fps: The file's average rate; 0 if unknown.
        zero_s: The file time that the model is told as 0.
        time_base: `nominal` tells index / fps whatever the file says.
    """
    numbers = [index - first_index for index in indices]
    shown_s = [time_s - zero_s for time_s in times_s]
    nominal = fps > 0 and all(abs(n / fps - t) <= SAME_TIME_S for n, t in zip(numbers, shown_s, strict=True))
    if fps > 0 and (nominal or time_base == "nominal"):
        return FrameClock(tuple(numbers), fps, frames)
    ticks = tuple(max(0, round(time_s * MICROSECONDS_PER_S)) for time_s in shown_s)
    return FrameClock(ticks, float(MICROSECONDS_PER_S), max(ticks) + 1)


def vllm_metadata(clock: FrameClock) -> dict[str, Any]:
    """The metadata of a video item in vLLM's form, from which its prompt says the times of `clock`.

    Without `do_sample_frames: False` a Hugging Face processor would sample once more.
    """
    return {
        "fps": clock.rate,
        "duration": clock.total / clock.rate,
        "total_num_frames": clock.total,
        "frames_indices": list(clock.ticks),
        "video_backend": "opencv",
        "do_sample_frames": False,
    }
