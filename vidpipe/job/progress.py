"""A run at one moment, for terminals, logs and other hosts.

Rows are counted as they are recorded; a thread of its own tells, also while the engine computes or hangs.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Literal

from vidpipe.job.display import Display
from vidpipe.job.early import Foreteller, Sight, keep_early
from vidpipe.job.gauges import Gauges, WaitsFor
from vidpipe.job.gpu import Gpu, Gpus
from vidpipe.job.predicted import summed
from vidpipe.job.rate import Rate
from vidpipe.job.run_count import RunCount
from vidpipe.record.bulletin import remove_bulletin, write_bulletin
from vidpipe.record.failures import Failed, FailureCount
from vidpipe.record.lease import BEATS_A_LEASE
from vidpipe.record.row import OutputRow
from vidpipe.record.run_dir import RunDir
from vidpipe.record.shards import read_predictions
from vidpipe.redact import redact

Phase = Literal["planning", "starting", "running", "ended"]
TICK_S = 0.5
BUSY_WINDOW_S = 30.0
"""Shares of busy time are of so long: a clip's seconds count when it has come through."""
COST_WINDOW_S = 1800.0
"""Longer than a rate's of rows, for it changes less, and what others do comes by the shard."""
LOOK_EVERY_S, LOOK_SHARE = 5.0, 0.01
"""Between two looks at what others have finished; more where a look takes more than this share of the time."""


@dataclass(frozen=True)
class Busy:
    """Shares of the last half minute, 0 to 1."""

    decode: float = 0.0
    """Of all workers' time."""
    prepare: float = 0.0
    """Of all workers' time, or of this process's where it prepares."""
    engine: float = 0.0


@dataclass(frozen=True)
class Progress:
    """See `vidpipe run --progress jsonl` (`cli.documents_of_progress.ProgressDocument`) for what the fields mean."""

    phase: Phase = "planning"
    message: str = ""
    rows: int = 0
    recorded: int = 0
    recorded_here: int = 0
    statuses: Mapping[str, int] = field(default_factory=dict)
    failures: tuple[Failed, ...] = ()
    rows_per_s: float | None = None
    rows_per_s_here: float | None = None
    seconds_left: float | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    waits_for: WaitsFor | None = None
    gauges: Gauges | None = None
    busy: Busy = field(default_factory=Busy)
    gpus: tuple[Gpu, ...] = ()

    @property
    def failed(self) -> int:
        """Rows that this process recorded with an error."""
        return sum(count for status, count in self.statuses.items() if status.endswith("_error"))


class RunProgress:
    """Counts what a run's processes do and tells its display; a context, at whose end the display is told the last.

    Args:
        display: Is told.
        run_dir: Gets this process's bulletin.
        count: Knows what all processes have recorded.
        lease_s: A bulletin comes ten times in so long.
        prepares_here: Whether this process prepares clips, not the workers.
    """

    def __init__(
        self, display: Display, run_dir: RunDir, count: RunCount, lease_s: float, *, prepares_here: bool
    ) -> None:
        self._display, self._run_dir, self._count = display, run_dir, count
        self._bulletin_every_s, self._prepares_here = lease_s / BEATS_A_LEASE, prepares_here
        self._statuses: Counter[str] = Counter()
        self._failures, self._tokens_in, self._tokens_out, self._vision_tokens = FailureCount(), 0, 0, 0
        self._foreteller = Foreteller(summed(read_predictions(run_dir)), count.plan_rows)
        self._rows_rate, self._here_rate, self._cost_rate = Rate(), Rate(), Rate(COST_WINDOW_S)
        self._look: Callable[[float], Gauges] | None = None
        self._gauges: Gauges | None = None
        self._earlier: deque[tuple[float, Gauges]] = deque()
        self._gpus, self._message, self._ended = Gpus(), "", False
        self._look_at_s = self._bulletin_at_s = 0.0
        self._before = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)

    def __enter__(self) -> RunProgress:
        self._count.look()
        self._before = self._count.recorded[0]
        self._display.begin(self._count.rows, self._before)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._ended = True
        self._count.look()
        self._display.show(self._now(time.monotonic()))
        self._display.end()
        with suppress(OSError):
            remove_bulletin(self._run_dir)

    def state(self, text: str) -> None:
        """See `Display.state`."""
        self._message = redact(text)
        self._display.state(self._message)

    def warn(self, text: str) -> None:
        """See `Display.warn`."""
        self._message = redact(text)
        self._display.warn(self._message)

    def last_words(self, text: str) -> None:
        """The process is about to end without further ado: say why, and give the terminal back."""
        self._stop.set()
        self.warn(text)
        self._display.end()

    def row(self, row: OutputRow) -> None:
        """A row was recorded by this process."""
        self._statuses[row.status] += 1
        if row.error_kind is not None:
            self._failures.add(row.error_kind, redact(row.error or ""))
        self._vision_tokens += row.vision_tokens.asked if row.vision_tokens and row.tokens_in is not None else 0
        self._tokens_in += row.tokens_in or 0
        self._tokens_out += row.tokens_out or 0
        self._display.row(row)
        if not self._foreteller.told:
            self._foretell()

    def engine(self, look: Callable[[float], Gauges]) -> None:
        """From now on `look` says what the engine and what feeds it are at; it is asked from the thread."""
        self._look = look

    def engine_ended(self) -> None:
        """There is no engine any more."""
        look, self._look = self._look, None
        if look is not None:
            self._gauges = look(time.monotonic())

    def _run(self) -> None:
        while not self._stop.wait(TICK_S):
            now_s = time.monotonic()
            if now_s >= self._look_at_s:
                with suppress(OSError):  # a file server that is away for a moment
                    self._count.look()
                took_s = time.monotonic() - now_s
                self._look_at_s = now_s + max(LOOK_EVERY_S, took_s / LOOK_SHARE)
            progress = self._now(now_s)
            self._display.show(progress)
            if now_s >= self._bulletin_at_s:
                self._bulletin_at_s = now_s + self._bulletin_every_s
                with suppress(OSError):
                    write_bulletin(self._run_dir, asdict(progress))

    def _now(self, now_s: float) -> Progress:
        look = self._look
        if look is not None:
            self._gauges = look(now_s)
        gauges = self._gauges
        recorded, cost = self._count.recorded
        here = self._statuses.total()
        recorded = max(recorded, self._before + here)  # engines of this process elsewhere may be amid their shards
        self._rows_rate.see(now_s, recorded)
        self._here_rate.see(now_s, here)
        self._cost_rate.see(now_s, cost)
        return Progress(
            phase=self._phase,
            message=self._message,
            rows=self._count.rows,
            recorded=recorded,
            recorded_here=here,
            statuses=dict(self._statuses),
            failures=self._failures.most_first,
            rows_per_s=self._rows_rate.per_s,
            rows_per_s_here=self._here_rate.per_s,
            seconds_left=self._cost_rate.seconds_to(self._count.cost),
            tokens_in=self._tokens_in,
            tokens_out=self._tokens_out,
            waits_for=gauges.waits_for if gauges is not None and recorded < self._count.rows else None,
            gauges=gauges,
            busy=self._busy(now_s, gauges),
            gpus=self._gpus.read(),
        )

    def _foretell(self) -> None:
        """Keep what the first rows tell of all."""
        if self._look is None:
            return
        gauges, answered = self._look(time.monotonic()), self._statuses["ok"] + self._statuses["length"]
        sight = Sight(
            gauges.clips, gauges.decoded_pixels, gauges.decode_core_s, answered, self._vision_tokens, gauges.engine_s
        )
        if (early := self._foreteller.see(sight)) is not None:
            with suppress(OSError):
                keep_early(self._run_dir, early)

    @property
    def _phase(self) -> Phase:
        if self._ended:
            return "ended"
        if self._gauges is None:
            return "planning"
        return "running" if self._gauges.engine_is_up else "starting"

    def _busy(self, now_s: float, gauges: Gauges | None) -> Busy:
        if gauges is None:
            return Busy()
        self._earlier.append((now_s, gauges))
        while len(self._earlier) > 2 and self._earlier[1][0] <= now_s - BUSY_WINDOW_S:
            self._earlier.popleft()
        then_s, then = self._earlier[0]
        passed_s = now_s - then_s
        if passed_s <= 0:
            return Busy()

        def share(now: float, before: float, threads: int) -> float:
            return min(1.0, max(0.0, (now - before) / (passed_s * threads)))

        preparing = 1 if self._prepares_here else gauges.workers
        return Busy(
            share(gauges.decode_s, then.decode_s, gauges.workers),
            share(gauges.prepare_s, then.prepare_s, preparing),
            share(gauges.engine_s, then.engine_s, 1),
        )
