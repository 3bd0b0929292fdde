"""How busy a process kept its engine: printed when the run ends, kept in the run directory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vidpipe.job.prepare import SeenClip


@dataclass(frozen=True)
class FeedReport:
    """Times and bytes of one process; times are wall seconds from the first engine's start to the end."""

    wall_s: float
    idle_s: Mapping[str, float]
    """Seconds in which the engine had nothing to do, by cause (see `job.idle`)."""
    rows: int
    """Rows that this process recorded."""
    clips: int
    """Clips that came through decoding."""
    decode_s: float
    """Seconds that workers spent on decoding, one thread each."""
    prepare_s: float
    transfer_s: float
    """Seconds between a worker's last word about a clip and the engine's process having it."""
    workers: int
    """Worker processes at the end."""
    peak_media_bytes: int
    media_limit_bytes: int
    engine_starts: int
    decode_core_s: float | None = None
    """Processor time of decoding; None in what an older vidpipe wrote."""

    @property
    def engine_s(self) -> float:
        """Seconds in which the engine had work."""
        return max(0.0, self.wall_s - sum(self.idle_s.values()))

    def sentence(self) -> str:
        """For people."""
        parts = [f"{cause} {seconds:.1f}" for cause, seconds in self.idle_s.items() if seconds >= 0.05]
        why = f" ({', '.join(parts)})" if parts else ""
        return f"the engine had nothing to do for {sum(self.idle_s.values()):.1f} of {self.wall_s:.1f} s{why}"


class FeedMeter:
    """Counts what a `FeedReport` tells."""

    def __init__(self) -> None:
        self.rows = self.clips = self.engine_starts = self.decoded_pixels = 0
        self.decode_s = self.decode_core_s = self.prepare_s = self.transfer_s = self.wall_s = 0.0
        self.idle_s: dict[str, float] = {}

    def clip(self, seen: SeenClip, prepare_s: float, transfer_s: float) -> None:
        """A clip has come through."""
        self.clips += 1
        self.decode_s += seen.decode_s
        self.decode_core_s += seen.decode_core_s
        self.decoded_pixels += seen.frame_bytes // 3
        self.prepare_s += prepare_s
        self.transfer_s += transfer_s

    def engine(self, wall_s: float, idle_s: Mapping[str, float]) -> None:
        """An engine has ended."""
        self.engine_starts += 1
        self.wall_s += wall_s
        for cause, seconds in idle_s.items():
            self.idle_s[cause] = self.idle_s.get(cause, 0.0) + seconds

    def report(self, workers: int, peak_media_bytes: int, media_limit_bytes: int) -> FeedReport:
        """What was counted."""
        return FeedReport(
            round(self.wall_s, 3),
            {cause: round(seconds, 3) for cause, seconds in self.idle_s.items()},
            self.rows,
            self.clips,
            round(self.decode_s, 3),
            round(self.prepare_s, 3),
            round(self.transfer_s, 3),
            workers,
            peak_media_bytes,
            media_limit_bytes,
            self.engine_starts,
            round(self.decode_core_s, 3),
        )


def together(reports: Sequence[FeedReport]) -> FeedReport | None:
    """The sum over several processes, seconds too; None of none."""
    if not reports:
        return None
    values = [asdict(report) for report in reports]
    idle_s: Counter[str] = Counter()
    for report in reports:
        idle_s.update(report.idle_s)
    told = {name: [one[name] for one in values if one[name] is not None] for name in values[0] if name != "idle_s"}
    sums: dict[str, Any] = {name: sum(numbers) if numbers else None for name, numbers in told.items()}
    return FeedReport(**{**sums, "idle_s": dict(idle_s)})
