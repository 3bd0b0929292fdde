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
from vidpipe.job.watchdog import Watchdog
from vidpipe.record.disk import replace_json
from vidpipe.record.run_dir import RunDir

Answered = tuple[bool, FeedReport | None, tuple[Mapping[str, Any], ...]]
"""Whether all rows are answered (False: asked to stop, or too many have failed); how busy the engine was; what its
encoder did."""


def answer(
    prospect: Prospect,
    run_dir: RunDir,
    make_feed: Callable[[], ShardFeed],
    engine: Engine,
    graphs: WantedGraphs | None,
    decoders: Decoders,
    budget: ByteBudget,
    resolver: Resolver,
    progress: RunProgress,
    limit: FailureLimit,
) -> Answered:
    """Answer the rows of a feed.

    Raises:
        EngineError: the engine cannot start, hangs, or died more often than `retry.engine_restarts`.
    """
    recipe, meter = prospect.recipe, FeedMeter()
    encoder: list[dict[str, Any]] = []
    restarts = 0
    with stop_on_signals() as asked_to_stop:

        def stop() -> bool:
            return asked_to_stop() or limit.exceeded

        while True:
            feed = make_feed()
            try:
                completed = _with_engine(
                    prospect, run_dir, feed, engine, graphs, decoders, budget, resolver, progress, meter, encoder, stop
                )
                return completed, _store(run_dir, meter, decoders, budget), tuple(encoder)
            except EngineError as error:
                feed.close(died=error.kind in ("engine_dead", "engine_timeout"))
                _store(run_dir, meter, decoders, budget)
                if error.kind != "engine_dead" or restarts >= recipe.retry.engine_restarts:
                    message = f"{error}\nThe engine's own output is in {run_dir.engine_log}."
                    raise EngineError(error.kind, message) from error
                restarts += 1
                progress.warn(f"{error}; starting it again ({restarts} of {recipe.retry.engine_restarts})")
            finally:
                feed.close()
            engine = make_engine(recipe.model, recipe.engine, prospect.checkpoint.location, prospect.demands)


def _with_engine(
    prospect: Prospect,
    run_dir: RunDir,
    feed: ShardFeed,
    engine: Engine,
    graphs: WantedGraphs | None,
    decoders: Decoders,
    budget: ByteBudget,
    resolver: Resolver,
    progress: RunProgress,
    meter: FeedMeter,
    encoder: list[dict[str, Any]],
    stop: Callable[[], bool],
) -> bool:
    recipe = prospect.recipe
    decoded = Decoded(feed, decoders, budget, engine.preparer, recipe)
    decoded.top_up()
    if not decoded and feed.finished:
        return True  # rows that cannot run were all there was
    if stop():
        decoded.cancel()
        return False
    idle = IdleClock(time.monotonic())
    progress.engine(partial(look, meter, idle, decoded, decoders, budget, None))
    try:
        progress.state(f"starting {engine.version}")
        engine.start(graphs)
        idle.started(time.monotonic())
        progress.state(f"running {engine.version}")
        depth = recipe.feed.queue_depth or 2 * engine.batch_rows
        with Watchdog(recipe.retry.engine_timeout_s, run_dir.engine_log, progress.last_words) as watchdog:
            loop = Loop(engine, feed, decoded, budget, resolver, depth, idle, watchdog, meter)
            progress.engine(partial(look, meter, idle, decoded, decoders, budget, loop))
            completed = loop.run(stop)
            if (report := engine.encoder_report()) is not None:
                encoder.append(report)
                replace_json(run_dir.encoder_file, encoder)
            return completed
    finally:
        progress.engine_ended()
        meter.engine(idle.ended(time.monotonic()), idle.idle_s)
        decoded.cancel()
        engine.stop()


def _store(run_dir: RunDir, meter: FeedMeter, decoders: Decoders, budget: ByteBudget) -> FeedReport | None:
    if not meter.engine_starts:
        return None
    report = meter.report(decoders.workers, budget.peak, budget.limit)
    replace_json(run_dir.feed_file, asdict(report))
    return report
