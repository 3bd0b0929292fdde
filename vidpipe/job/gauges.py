"""What a process is at in one moment: how full each stage between the files and the answers is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from vidpipe.job.budget import ByteBudget
    from vidpipe.job.decoded import Decoded
    from vidpipe.job.decoders import Decoders
    from vidpipe.job.feed_report import FeedMeter
    from vidpipe.job.idle import IdleClock
    from vidpipe.job.loop import Loop

WaitsFor = Literal["engine_start", "clips", "other_processes"]
"""`clips`: the engine is empty while some are decoded or prepared. `other_processes`: they hold all that is left."""


@dataclass(frozen=True)
class Gauges:
    """Counts of now, and sums since the process began."""

    engine_is_up: bool
    wall_s: float
    """Since the first engine's start."""
    idle_s: Mapping[str, float]
    """Seconds in which the engine had nothing to do, by cause (see `job.idle`)."""
    clips: int
    """That have come through decoding."""
    decoded_pixels: int
    """Of their frames and images, before they are resized."""
    decode_s: float
    decode_core_s: float
    prepare_s: float
    transfer_s: float
    workers: int
    clips_on_the_way: int
    """Taken, and not yet decoded and prepared."""
    rows_ready: int
    """Prepared rows that the engine has not taken."""
    rows_in_engine: int
    media_bytes: int
    media_limit_bytes: int

    @property
    def engine_s(self) -> float:
        """Seconds in which the engine had work."""
        return max(0.0, self.wall_s - sum(self.idle_s.values()))

    @property
    def waits_for(self) -> WaitsFor | None:
        """What the engine lacks; None while it has work."""
        if not self.engine_is_up:
            return "engine_start"
        if self.rows_in_engine or self.rows_ready:
            return None
        return "clips" if self.clips_on_the_way else "other_processes"


def look(
    meter: FeedMeter,
    idle: IdleClock,
    decoded: Decoded,
    decoders: Decoders,
    budget: ByteBudget,
    loop: Loop | None,
    now_s: float,
) -> Gauges:
    """Read everything; from any thread, for whole numbers that are one row old do no harm.

    Args:
        meter: Counts clips and earlier engines.
        idle: Of the engine that runs now.
        decoded: The clips on the way to it.
        decoders: What decodes them.
        budget: Their bytes.
        loop: What feeds it; None while it starts.
        now_s: `time.monotonic()`.
    """
    idle_now = idle.so_far(now_s)
    return Gauges(
        engine_is_up=loop is not None,
        wall_s=meter.wall_s + idle.elapsed_s(now_s),
        idle_s={cause: seconds + meter.idle_s.get(cause, 0.0) for cause, seconds in idle_now.items()},
        clips=meter.clips,
        decoded_pixels=meter.decoded_pixels,
        decode_s=meter.decode_s,
        decode_core_s=meter.decode_core_s,
        prepare_s=meter.prepare_s,
        transfer_s=meter.transfer_s,
        workers=decoders.workers,
        clips_on_the_way=len(decoded),
        rows_ready=0 if loop is None else loop.rows_ready,
        rows_in_engine=0 if loop is None else loop.rows_in_engine,
        media_bytes=budget.used,
        media_limit_bytes=budget.limit,
    )
