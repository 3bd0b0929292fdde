"""One run from a recipe to a results file: open, plan, answer, merge. Called again, it goes on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from vidpipe import __version__
from vidpipe.engine.interface import Engine
from vidpipe.engine.registry import make_engine
from vidpipe.errors import EngineError, RecipeError
from vidpipe.job import outcome
from vidpipe.job.capture import output_to
from vidpipe.job.decoded import Decoded
from vidpipe.job.display import Display
from vidpipe.job.loop import Loop
from vidpipe.job.prospect import Prospect
from vidpipe.job.settings import ResolvedRow, Resolver, comparable, differences, git_revision, versions
from vidpipe.job.signals import stop_on_signals
from vidpipe.job.summary import Summary, summarize
from vidpipe.plan.clips import Plan
from vidpipe.record.merge import merge, merged_rows
from vidpipe.record.row import OutputRow
from vidpipe.record.run_dir import RunDir, describe_environment
from vidpipe.record.writer import RowWriter, recorded_statuses


@dataclass(frozen=True)
class RunResult:
    """How a call of `run` ended."""

    summary: Summary
    results: Path
    answered_now: int
    interrupted: bool


def run(
    prospect: Prospect, path: Path, display: Display, *, fresh: bool = False, limit: int | None = None
) -> RunResult:
    """Answer every row that the run directory `path` does not hold yet.

    Args:
        prospect: The recipe and what it names.
        path: The run directory; made if it does not exist.
        display: Is told how it goes.
        fresh: Forget an earlier run there.
        limit: Answer the manifest's first rows only.

    Raises:
        RecipeError, ManifestError, CapabilityError: before anything is started.
        EngineError: the engine cannot start, or died; what was answered is kept.
    """
    prospect.manifest.raise_if_refused(prospect.manifest_path)
    run_dir = RunDir(path)
    run_dir.open(fresh=fresh)
    try:
        return _run(prospect, run_dir, display, limit)
    finally:
        run_dir.close()


def _run(prospect: Prospect, run_dir: RunDir, display: Display, limit: int | None) -> RunResult:
    engine = make_engine(prospect.recipe.model, prospect.recipe.engine, prospect.checkpoint.location)
    started = _describe(prospect, engine)
    _refuse_changed_recipe(run_dir, started)
    done = {row_id for row_id, _ in recorded_statuses(run_dir)}
    plan = prospect.plan(done, limit)
    if plan.rows or run_dir.read_run() is None:
        run_dir.write_run(started, prospect.loaded.text)
    display.begin(plan.rows + len(done), len(done))
    writer = RowWriter(run_dir, prospect.manifest.columns, started, prospect.recipe.record.sync_s)
    try:
        completed = _answer(prospect, plan, engine, run_dir, writer, display)
    finally:
        writer.close()
        display.end()
    if plan.rows or merged_rows(run_dir.results) != len(done):
        merge([run_dir.path], run_dir.results)
    summary = summarize(run_dir.results, len(prospect.manifest.rows))
    return RunResult(summary, run_dir.results, summary.rows - len(done), interrupted=not completed)


def _answer(
    prospect: Prospect, plan: Plan, engine: Engine, run_dir: RunDir, writer: RowWriter, display: Display
) -> bool:
    """Answer the plan's rows; False when asked to stop before the end."""

    def record(row: OutputRow, resolved: ResolvedRow | None) -> None:
        writer.append(row, resolved.values if resolved else {})
        display.row(row)

    for bad in plan.bad_rows:
        record(outcome.not_run(bad), None)
    if not plan.clips:
        return True
    resolver = Resolver(prospect.recipe, prospect.family.name, engine.version)
    with stop_on_signals() as stop, ThreadPoolExecutor(1, "decode") as executor:
        decoded = Decoded(plan.clips, prospect.reader, executor)
        try:
            display.state(f"starting {engine.version}")
            with output_to(run_dir.engine_log):
                engine.start()
                display.state(f"running {engine.version}")
                loop = Loop(engine, resolver, prospect.recipe.special_tokens, record, writer.tick)
                return loop.run(decoded, stop)
        except EngineError as error:
            raise EngineError(error.kind, f"{error}\nThe engine's own output is in {run_dir.engine_log}.") from error
        finally:
            decoded.cancel()
            with output_to(run_dir.engine_log):
                engine.stop()


def _describe(prospect: Prospect, engine: Engine) -> dict[str, Any]:
    recipe = prospect.recipe
    return {
        "vidpipe": __version__,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "description": recipe.description,
        "recipe": comparable(recipe),
        "given": prospect.loaded.given,
        "family": prospect.family.name,
        "engine": engine.version,
        "versions": versions(),
        "git": git_revision(),
        "environment": describe_environment(),
        "manifest": {
            "path": str(prospect.manifest_path),
            "rows": len(prospect.manifest.rows),
            "columns": prospect.manifest.columns,
        },
    }


def _refuse_changed_recipe(run_dir: RunDir, now: dict[str, Any]) -> None:
    """Rows made under two recipes must not stand in one result."""
    before = run_dir.read_run()
    changed = differences(before["recipe"], now["recipe"]) if before else []
    if changed:
        raise RecipeError(
            f"{run_dir.path} was made with another recipe:\n  "
            + "\n  ".join(changed)
            + "\nType --fresh to forget that run, or choose another run directory with -o."
        )
