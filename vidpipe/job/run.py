"""One run from a recipe to a results file: open, plan, answer, merge.

Any number of processes may do this at once with one run directory: they share the shards.
Called again, it goes on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from vidpipe import __version__
from vidpipe.engine.interface import Engine
from vidpipe.engine.registry import make_engine
from vidpipe.errors import RecipeError
from vidpipe.job.answer import Answered, Answering
from vidpipe.job.budget import ByteBudget, default_limit
from vidpipe.job.capture import output_to
from vidpipe.job.codec import require_programs
from vidpipe.job.decoders import MakeDecoders, local_decoders, prepares_in_workers
from vidpipe.job.display import Display
from vidpipe.job.encoder_plan import stored_graphs
from vidpipe.job.encoder_possible import refuse_graphs, why_no_graphs_here
from vidpipe.job.feed import ShardFeed
from vidpipe.job.feed_report import FeedReport
from vidpipe.job.progress import RunProgress
from vidpipe.job.prospect import Prospect
from vidpipe.job.run_count import RunCount
from vidpipe.job.settings import Resolver, comparable, differences, git_revision, versions
from vidpipe.job.sharding import stored_shards
from vidpipe.job.summary import Summary, summarize
from vidpipe.job.tolerance import FailureLimit
from vidpipe.job.unanswerable import rows_in_vain
from vidpipe.record.disk import has_links, server_now_s
from vidpipe.record.lease import is_alive
from vidpipe.record.merge import is_complete, merge
from vidpipe.record.run_dir import RunDir, describe_environment
from vidpipe.record.shards import Shards, read_predictions
from vidpipe.record.status import read_status, statuses_by_shard
from vidpipe.redact import redact
from vidpipe.wording import counted


@dataclass(frozen=True)
class RunResult:
    """How a call of `run` ended."""

    summary: Summary
    results: Path
    answered_now: int
    interrupted: bool
    feed: FeedReport | None = None
    """How busy the engine was; None if it was not started."""
    encoder: tuple[Mapping[str, Any], ...] = ()
    """What the vision encoder did in each engine of this process, where somebody counted."""
    stopped: bool = False
    """Whether it ended early because more rows had failed than the tolerance allows."""


def run(
    prospect: Prospect,
    path: Path,
    display: Display,
    *,
    fresh: bool = False,
    limit: int | None = None,
    share: tuple[int, int] = (0, 1),
    make_decoders: MakeDecoders = local_decoders,
    elsewhere: Callable[[RunDir, RunProgress], Answered] | None = None,
    merges: bool = True,
) -> RunResult:
    """Answer every row that the run directory `path` does not hold yet.

    Args:
        prospect: The recipe and what it names.
        path: The run directory; made if it does not exist.
        display: Is told how it goes.
        fresh: Forget an earlier run there.
        limit: Answer the manifest's first rows only.
        share: (i, n): take only every n-th shard, from the i-th on.
        make_decoders: Makes what reads the clips.
        elsewhere: Has the rows answered by other processes, which join the run directory; this one plans, counts and
            merges.
        merges: Whether to make the results file at the end; False where another process will.

    Raises:
        RecipeError, ManifestError, CapabilityError: before anything is started.
        EngineError: the engine cannot start, or died; what was answered is kept.
    """
    prospect.manifest.raise_if_refused(prospect.manifest_path)
    require_programs(prospect.recipe)
    recipe = prospect.recipe
    refuse_graphs(recipe, why_no_graphs_here(recipe, prospect.demands.architectures))
    engine = make_engine(recipe.model, recipe.engine, prospect.checkpoint.location, prospect.demands)
    run_dir = RunDir(path)
    run_dir.create()
    if not has_links(run_dir.claims):
        display.warn(f"{path} is on a file system without hard links: marks are renamed or exclusively created")
    if fresh:
        _refuse_live_workers(run_dir, prospect.recipe.record.lease_s)
        run_dir.clear()
    started = _join(run_dir, prospect, engine)
    in_workers = prepares_in_workers(recipe, engine.capabilities)
    preparer = engine.preparer if in_workers else None
    budget = ByteBudget(recipe.feed.memory or default_limit())
    with output_to(run_dir.engine_log), ExitStack() as open_decoders:  # children print too
        decoders = open_decoders.enter_context(make_decoders(prospect.reader, engine.capabilities, budget, preparer))
        shards = stored_shards(prospect, run_dir, decoders, limit, display.state)
        if is_complete(run_dir.results, shards.rows):
            summary = summarize(run_dir.results, len(prospect.manifest.rows))
            return RunResult(summary, run_dir.results, 0, interrupted=False)
        recorded = statuses_by_shard(run_dir)
        limit_of_failures, before = FailureLimit(recipe.output, shards.rows), sum(map(Counter.total, recorded.values()))
        limit_of_failures.see_all(recorded)
        wanted = {shard for shard in _wanted(prospect, shards, limit) if shard % share[1] == share[0]}
        resolver = Resolver(prospect.recipe, prospect.family.name, engine.version)
        count = RunCount(run_dir, shards, wanted, limit_of_failures)
        with RunProgress(display, run_dir, count, recipe.record.lease_s, prepares_here=not in_workers) as progress:
            if elsewhere is not None:
                open_decoders.close()  # for the plan only
                answered = elsewhere(run_dir, progress)
                limit_of_failures.see_all(statuses_by_shard(run_dir))
            else:
                feed = partial(
                    ShardFeed, prospect, run_dir, shards, wanted, started, resolver, progress.row, limit_of_failures
                )
                in_vain = rows_in_vain(read_predictions(run_dir), shards.rows, list(recorded.values()))
                if in_vain:
                    progress.warn(_said(in_vain))
                answering = Answering(
                    prospect, run_dir, decoders, budget, resolver, progress, limit_of_failures, in_vain=in_vain > 0
                )
                answered = answering.run(feed, engine, stored_graphs(run_dir, prospect))
    completed, report, encoder = answered
    status = read_status(path)
    stopped = not completed and limit_of_failures.exceeded
    interrupted = not completed and not stopped
    if interrupted or not merges:  # whoever asked to stop may kill soon: no time for a merge
        summary = Summary(status.recorded, len(prospect.manifest.rows), status.statuses)
        return RunResult(summary, run_dir.results, status.recorded - before, interrupted, report, encoder, stopped)
    if not is_complete(run_dir.results, shards.rows):  # another process may have merged already
        merge([path], run_dir.results)
    summary = summarize(run_dir.results, len(prospect.manifest.rows))
    return RunResult(summary, run_dir.results, status.recorded - before, False, report, encoder, stopped)


def _join(run_dir: RunDir, prospect: Prospect, engine: Engine) -> dict[str, Any]:
    """Begin the run, or join the one that is there.

    Raises:
        RecipeError: it was begun with another recipe.
    """
    now = _describe(prospect, engine)
    stored = run_dir.write_run(now, prospect.loaded.text)
    changed = differences(_decisive(stored), _decisive(now))
    if changed:
        raise RecipeError(
            f"{run_dir.path} was made with another recipe or engine:\n  "
            + "\n  ".join(changed)
            + "\nType --fresh to forget that run, or choose another run directory with -o."
        )
    if stored["manifest"] != now["manifest"]:
        stored = {
            **stored,
            "manifest": {**now["manifest"], "columns": stored["manifest"]["columns"] | now["manifest"]["columns"]},
        }
        run_dir.update_run(stored)
    return stored


def _decisive(run: Mapping[str, Any]) -> dict[str, Any]:
    """What must be the same for rows to stand in one result."""
    return {**run["recipe"], "engine version": run["engine"]}


def _said(in_vain: int) -> str:
    return (
        f"no row can be answered: {counted(in_vain, 'row')} to come, each with a fault in its files or values. "
        "They are recorded, and no engine is started"
    )


def _wanted(prospect: Prospect, shards: Shards, limit: int | None) -> set[int]:
    if limit is None:
        return set(shards.ids)
    ids = {row.id for row in prospect.manifest.rows[:limit]}
    return {shard for shard, members in shards.ids.items() if not ids.isdisjoint(members)}


def _refuse_live_workers(run_dir: RunDir, lease_s: float) -> None:
    now_s, done = server_now_s(run_dir.claims), run_dir.done_shards()
    for shard, attempt in run_dir.latest_attempts().items():
        if shard not in done and is_alive(run_dir, shard, attempt, now_s, lease_s):
            raise RecipeError(
                f"--fresh: another vidpipe is at work on {run_dir.path}, or died less than {lease_s:g} s ago. Wait for "
                "it, or choose another run directory with -o."
            )


def _describe(prospect: Prospect, engine: Engine) -> dict[str, Any]:
    recipe = prospect.recipe
    values = {
        "vidpipe": __version__,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "description": recipe.description,
        "recipe": comparable(recipe),
        "given": prospect.loaded.given,
        "folder": str(prospect.loaded.folder),
        "family": prospect.family.name,
        "engine": engine.version,
        "lease_s": recipe.record.lease_s,
        "versions": versions(),
        "git": git_revision(),
        "environment": describe_environment(),
        "manifest": {
            "path": str(prospect.manifest_path),
            "rows": len(prospect.manifest.rows),
            "columns": prospect.manifest.columns,
        },
    }
    described: dict[str, Any] = json.loads(redact(json.dumps(values)))
    described["manifest"]["columns"] = prospect.manifest.columns  # names, by which rows are read again
    return described
