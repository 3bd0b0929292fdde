"""One engine actor: the same run as `vidpipe run` in a process of its own, with its decoders anywhere.

It joins the run directory like any other process: takes leases, writes journals and parts, is watched for hangs and
measures why its engine is idle. What is special about Ray stays in `RayPool` and in the reports to the desk.
"""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError

from vidpipe.cluster.ray_desk import REPORT_EVERY_S, Report
from vidpipe.cluster.ray_pool import RayPool
from vidpipe.engine.devices import environments_of
from vidpipe.engine.interface import Capabilities, Preparer
from vidpipe.errors import RecipeError, VidpipeError
from vidpipe.job.budget import ByteBudget, default_limit
from vidpipe.job.decoders import Decoders
from vidpipe.job.prepare import ClipReader
from vidpipe.job.progress import Progress
from vidpipe.job.prospect import look_ahead
from vidpipe.job.run import RunResult, run
from vidpipe.recipe.load import LoadedRecipe
from vidpipe.record.disk import await_seen
from vidpipe.record.row import OutputRow
from vidpipe.record.run_dir import RunDir


@dataclass(frozen=True)
class Seat:
    """An engine's place in a run."""

    number: int
    loaded: LoadedRecipe
    """Of one engine."""
    path: Path
    """The run directory."""
    limit: int | None
    decoders: tuple[int, int]
    """Decode actors at first, and at most."""
    neighbours: int
    """Engines that may share the node's memory, this one too."""

    def on_this_node(self) -> LoadedRecipe:
        """The recipe with this engine's share of the node's memory, if the recipe names no bytes."""
        recipe = self.loaded.recipe
        memory = recipe.feed.memory or default_limit() // self.neighbours
        feed = recipe.feed.model_copy(update={"memory": memory})
        return replace(self.loaded, recipe=recipe.model_copy(update={"feed": feed}))


class EngineActor:
    """See the module; to be made a Ray actor."""

    def run(self, seat: Seat, desk: Any) -> RunResult | VidpipeError:
        """Answer rows until there are none left; what went wrong is returned, for Ray wraps what is raised."""
        os.environ.update(environments_of(seat.loaded.recipe.engine)[0])
        with _Reporter(seat.number, desk) as display:
            try:
                see_run(seat.path)
                return run(
                    look_ahead(seat.on_this_node(), begun=True),
                    seat.path,
                    display,
                    limit=seat.limit,
                    make_decoders=partial(_decoders_anywhere, seat.decoders),
                    merges=False,
                )
            except VidpipeError as error:
                return error


def see_run(path: Path) -> None:
    """Make sure that the command's run directory is this node's, too: it would be begun anew here otherwise.

    Raises:
        RecipeError: there is no run.
    """
    try:
        await_seen(RunDir(path).run_file)
    except FileNotFoundError:
        raise RecipeError(
            f"{path} is no run directory on {os.uname().nodename}. Choose one with -o on a file system that all nodes "
            "of the Ray cluster share."
        ) from None


def _decoders_anywhere(
    workers: tuple[int, int],
    reader: ClipReader,
    capabilities: Capabilities,
    budget: ByteBudget,
    preparer: Preparer | None,
) -> Decoders:
    make_pool = partial(RayPool, deaths=reader.recipe.retry.attempts)
    return Decoders(reader, workers[0], budget, preparer, workers[1], make_pool)


class _Reporter:
    """A `Display` whose watcher is the desk.

    A thread reports, and signals this process as a scheduler does when it is to stop, or when there is no desk any
    more: then the command is gone.
    """

    def __init__(self, seat: int, desk: Any) -> None:
        self._report = Report(seat, ray.get_runtime_context().get_node_id(), "reading the recipe")
        self._desk, self._lock, self._ended = desk, threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="reporter", daemon=True)

    def __enter__(self) -> _Reporter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def begin(self, rows: int, done: int) -> None:
        """See `Display.begin`."""

    def state(self, text: str) -> None:
        """See `Display.state`."""
        with self._lock:
            self._report = replace(self._report, state=text)

    def warn(self, text: str) -> None:
        """See `Display.warn`."""
        self.state(text)

    def row(self, row: OutputRow) -> None:
        """See `Display.row`."""
        told = OutputRow(
            id=row.id,
            clip_id=row.clip_id,
            status=row.status,
            error_kind=row.error_kind,
            error=row.error,
            tokens_in=row.tokens_in,
            tokens_out=row.tokens_out,
        )
        with self._lock:
            self._report.rows.append(told)

    def show(self, progress: Progress) -> None:
        """See `Display.show`; what others see of it stands in the run directory."""

    def end(self) -> None:
        """See `Display.end`."""

    def _run(self) -> None:
        stopping = False
        while True:
            last = self._ended.is_set()
            with self._lock:
                report, self._report = self._report, replace(self._report, rows=[])
            try:
                asked = ray.get(self._desk.report.remote(report))
            except RayError:
                asked = True
            if last:
                return
            if asked and not stopping:
                stopping = True
                os.kill(os.getpid(), signal.SIGTERM)
            self._ended.wait(REPORT_EVERY_S)
