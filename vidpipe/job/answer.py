"""The part of a run that needs an engine: start it, feed it, and start it again when it dies.

What is in a dead engine is not known to be its fault: the rows that were in it become
suspects of the next attempt at their shards, as after a crash of the process, and run one
at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

from vidpipe.engine.interface import Engine, WantedGraphs
from vidpipe.engine.registry import make_engine
from vidpipe.errors import EngineError
from vidpipe.job.budget import ByteBudget
from vidpipe.job.decoded import Decoded
from vidpipe.job.decoders import Decoders
from vidpipe.job.feed import ShardFeed
from vidpipe.job.feed_report import FeedMeter, FeedReport
from vidpipe.job.gauges import look
from vidpipe.job.idle import IdleClock
from vidpipe.job.loop import Loop
from vidpipe.job.progress import RunProgress
from vidpipe.job.prospect import Prospect
from vidpipe.job.settings import Resolver
from vidpipe.job.signals import stop_on_signals
from vidpipe.job.tolerance import FailureLimit
from vidpipe.job.unanswerable import record_in_vain
from vidpipe.job.watchdog import Watchdog
from vidpipe.record.disk import replace_json
from vidpipe.record.run_dir import RunDir

Answered = tuple[bool, FeedReport | None, tuple[Mapping[str, Any], ...]]
"""Whether all rows are answered (False: asked to stop, or too many have failed); how busy the engine was; what its
encoder did."""


class Answering:
    """Answers the rows of feeds with engines, one after the other.

    Args:
        prospect: The recipe and what it names.
        run_dir: The run.
        decoders: Read the clips.
        budget: Bounds the bytes of what they have read.
        resolver: Makes the settings that rows record.
        progress: Is told how it goes.
        limit: Says when too many rows have failed.
        in_vain: Whether no row is promised an answer: the engine is then started only if a clip can be read after all.
    """

    def __init__(
        self,
        prospect: Prospect,
        run_dir: RunDir,
        decoders: Decoders,
        budget: ByteBudget,
        resolver: Resolver,
        progress: RunProgress,
        limit: FailureLimit,
        *,
        in_vain: bool = False,
    ) -> None:
        self._prospect, self._recipe, self._run_dir = prospect, prospect.recipe, run_dir
        self._decoders, self._budget, self._resolver = decoders, budget, resolver
        self._progress, self._limit, self._in_vain = progress, limit, in_vain
        self._meter = FeedMeter()
        self._encoder: list[dict[str, Any]] = []

    def run(self, make_feed: Callable[[], ShardFeed], engine: Engine, graphs: WantedGraphs | None) -> Answered:
        """Answer the rows of a feed; a further one is made for each engine that takes the place of a dead one.

        Raises:
            EngineError: the engine cannot start, hangs, or died more often than `retry.engine_restarts`.
        """
        restarts, allowed = 0, self._recipe.retry.engine_restarts
        with stop_on_signals() as asked_to_stop:

            def stop() -> bool:
                return asked_to_stop() or self._limit.exceeded

            while True:
                feed = make_feed()
                try:
                    completed = self._with_engine(feed, engine, graphs, stop)
                    return completed, self._store(), tuple(self._encoder)
                except EngineError as error:
                    feed.close(died=error.kind in ("engine_dead", "engine_timeout"))
                    self._store()
                    if error.kind != "engine_dead" or restarts >= allowed:
                        message = f"{error}\nThe engine's own output is in {self._run_dir.engine_log}."
                        raise EngineError(error.kind, message) from error
                    restarts += 1
                    self._progress.warn(f"{error}; starting it again ({restarts} of {allowed})")
                finally:
                    feed.close()
                prospect = self._prospect
                engine = make_engine(
                    self._recipe.model, self._recipe.engine, prospect.checkpoint.location, prospect.demands
                )

    def _with_engine(
        self, feed: ShardFeed, engine: Engine, graphs: WantedGraphs | None, stop: Callable[[], bool]
    ) -> bool:
        """Whether all is answered; False where `stop` said so before."""
        decoded = Decoded(feed, self._decoders, self._budget, engine.preparer, self._recipe)
        decoded.top_up()
        if not decoded and feed.finished:
            return True  # rows that cannot run were all there was
        if self._in_vain and (ended := record_in_vain(decoded, feed, self._resolver, stop)) is not None:
            decoded.cancel()
            return ended
        if stop():
            decoded.cancel()
            return False
        idle = IdleClock(time.monotonic())
        look_at = partial(look, self._meter, idle, decoded, self._decoders, self._budget)
        self._progress.engine(partial(look_at, None))
        try:
            self._progress.state(f"starting {engine.version}")
            engine.start(graphs)
            idle.started(time.monotonic())
            self._progress.state(f"running {engine.version}")
            depth = self._recipe.feed.queue_depth or 2 * engine.batch_rows
            limit_s, log = self._recipe.retry.engine_timeout_s, self._run_dir.engine_log
            with Watchdog(limit_s, log, self._progress.last_words) as watchdog:
                loop = Loop(engine, feed, decoded, self._budget, self._resolver, depth, idle, watchdog, self._meter)
                self._progress.engine(partial(look_at, loop))
                completed = loop.run(stop)
                if (report := engine.encoder_report()) is not None:
                    self._encoder.append(report)
                    replace_json(self._run_dir.encoder_file, self._encoder)
                return completed
        finally:
            self._progress.engine_ended()
            self._meter.engine(idle.ended(time.monotonic()), idle.idle_s)
            decoded.cancel()
            engine.stop()

    def _store(self) -> FeedReport | None:
        """Keep how busy the engines were; None if none was started."""
        if not self._meter.engine_starts:
            return None
        report = self._meter.report(self._decoders.workers, self._budget.peak, self._budget.limit)
        replace_json(self._run_dir.feed_file, asdict(report))
        return report
