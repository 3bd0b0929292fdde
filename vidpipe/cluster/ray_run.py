"""`vidpipe run --on ray`: engines as Ray actors, each with decode actors of its own, all on one run directory.

    command: plan ─ actors ─ progress ─ merge
                      │
            engine actor (GPU) ◀═ object store ═ decode actors (cores, any node)
                      │
              leases, journals, parts in the run directory

Ray finds the places, moves the clips and says which process is gone; what was answered, what was being tried and how
often is in the run directory, as in every other way to run. So an engine actor is a whole run that joins, and the
rules for rows that kill processes, for lost nodes and for other processes on the same run are the ones of `job` and
`record`, unchanged. How much is decoded ahead is bounded in bytes by each engine's own budget.

The actors are plain ones, not the stages of a Ray Data pipeline. Tried with Ray 2.60 (`map_batches` over two pools of
stateful actors, one clip a block): when an engine was killed under `max_errored_blocks=-1`, its row and one that waited
for it were dropped, and a program is not told which; with Ray's own retries a row that kills is tried for ever; and
each dataset starts its actors anew, so that claiming shards little by little would load the model each time. Ray also
makes blocks that are lost with a node again from the source, which one that takes leases cannot allow.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from vidpipe.cluster.ray_desk import Desk
from vidpipe.cluster.ray_engine import EngineActor, Seat
from vidpipe.cluster.ray_places import CORES_AN_ENGINE, Places, gpus_an_engine
from vidpipe.errors import EngineError, VidpipeError
from vidpipe.job.answer import Answered
from vidpipe.job.feed_report import together
from vidpipe.job.loop import GRACE_S
from vidpipe.job.progress import RunProgress
from vidpipe.job.run import RunResult
from vidpipe.job.signals import stop_on_signals
from vidpipe.recipe.load import LoadedRecipe
from vidpipe.recipe.schema import Recipe
from vidpipe.record.run_dir import RunDir

LOOK_S = 0.3
STOP_S = GRACE_S + 10.0
"""After a request to stop: time for the engines to give back what they hold."""
DONE_S = 15.0
"""After the last row: time for the engines to note how busy they were; one that still loads its model is left."""


def answer_on_ray(
    loaded: LoadedRecipe, engines: int, limit: int | None, progress: RunProgress, run_dir: RunDir
) -> Answered:
    """Have so many engines on the connected cluster answer the rows of a run that is planned; see `run(elsewhere=)`.

    Raises:
        VidpipeError: an engine found recipe or manifest wrong.
        EngineError: no engine is left.
    """
    places = Places.on_cluster(loaded.recipe, engines)
    path = run_dir.path.absolute()
    seats = [
        Seat(number, loaded, path, limit, places.decoders_of(number), places.engines_a_node)
        for number in range(engines)
    ]
    return _Crew(seats, loaded.recipe, progress, path).run()


class _Crew:
    """The engines of one command.

    Args:
        seats: What each is to do.
        recipe: Its `retry.engine_restarts` are for each, those after lost nodes not counted.
        progress: Is told how it goes.
        path: The run directory.
    """

    def __init__(self, seats: Sequence[Seat], recipe: Recipe, progress: RunProgress, path: Path) -> None:
        self._seats, self._recipe, self._progress, self._path = seats, recipe, progress, path
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self._desk = ray.remote(Desk).options(num_cpus=0, scheduling_strategy=here).remote()
        self._actors: dict[Any, tuple[Seat, Any]] = {}
        """By the reference to what each engine will return."""
        self._results: list[RunResult] = []
        self._errors: list[EngineError] = []
        self._died_on: defaultdict[int, list[str | None]] = defaultdict(list)
        """For each engine, the nodes on which it has died."""
        self._states: dict[int, str] = {}
        self._nodes: dict[int, str] = {}
        self._shown = ""
        self._until_s: float | None = None
        """When to leave the engines that are still at work; None while they are wanted."""

    def run(self) -> Answered:
        """See `answer_on_ray`."""
        self._say_if_too_few()
        with stop_on_signals() as asked_to_stop:
            for seat in self._seats:
                self._start(seat)
            while self._actors and (self._until_s is None or time.monotonic() < self._until_s):
                ended, _ = ray.wait(list(self._actors), timeout=LOOK_S)
                self._show_news()  # an engine's last words come before its end
                for reference in ended:
                    self._see_end(reference)
                if self._until_s is None and (asked_to_stop() or self._results):
                    self._stop(DONE_S if self._completed else STOP_S)
        if self._errors and not self._results and not asked_to_stop():
            raise self._errors[0]
        feeds = [result.feed for result in self._results if result.feed is not None]
        encoders = tuple(report for result in self._results for report in result.encoder)
        return self._completed, together(feeds), encoders

    @property
    def _completed(self) -> bool:
        """Whether an engine has found every row recorded."""
        return any(not result.interrupted and not result.stopped for result in self._results)

    def _start(self, seat: Seat) -> None:
        actor = (
            ray.remote(EngineActor)
            .options(
                num_cpus=CORES_AN_ENGINE, num_gpus=gpus_an_engine(self._recipe), max_restarts=0, max_task_retries=0
            )
            .remote()
        )
        self._states[seat.number] = "waiting for a place"
        self._nodes.pop(seat.number, None)
        self._actors[actor.run.remote(seat, self._desk)] = (seat, actor)

    def _stop(self, within_s: float) -> None:
        """Nobody needs to begin anything more: it was asked for, or an engine has found nothing left to do."""
        self._until_s = time.monotonic() + within_s
        self._at_desk("ask_to_stop")
        for reference, (seat, actor) in list(self._actors.items()):
            if seat.number not in self._nodes:  # it has not begun
                ray.kill(actor)
                del self._actors[reference]

    def _see_end(self, reference: Any) -> None:
        seat, actor = self._actors.pop(reference)
        try:
            found: RunResult | VidpipeError = ray.get(reference)
        except RayTaskError as error:
            if isinstance(error.cause, OSError):  # a full disk, for example
                raise error.cause from None
            found = EngineError("engine_dead", f"engine {seat.number}: unexpected {error}")
        except RayError as error:
            ray.kill(actor)  # it may only be out of reach
            self._see_death(seat, f"{_reason(error)} Engine logs are in {self._path}.")
            return
        ray.kill(actor)
        if isinstance(found, RunResult):
            self._states[seat.number] = "done"
            self._results.append(found)
        elif isinstance(found, EngineError) and found.kind == "engine_timeout":
            self._see_death(seat, str(found))
        elif isinstance(found, EngineError):
            self._give_up(seat, found)
        else:
            raise found

    def _see_death(self, seat: Seat, reason: str) -> None:
        if self._until_s is not None:
            return
        self._died_on[seat.number].append(self._nodes.get(seat.number))
        # Ray may learn late that it was the node; then it was no fault of the engine.
        lost = {node["NodeID"] for node in ray.nodes() if not node["Alive"]}
        deaths = sum(node not in lost for node in self._died_on[seat.number])
        restarts = self._recipe.retry.engine_restarts
        if deaths > restarts:
            message = f"engine {seat.number} has died {deaths} times, last: {reason}"
            self._give_up(seat, EngineError("engine_dead", message))
            return
        self._progress.warn(f"engine {seat.number} is gone; starting it again ({deaths} of {restarts}). {reason}")
        self._say_if_too_few()
        self._start(seat)

    def _say_if_too_few(self) -> None:
        if why := Places.on_cluster(self._recipe, len(self._seats)).too_few():
            self._progress.warn(why)

    def _give_up(self, seat: Seat, error: EngineError) -> None:
        self._states[seat.number] = "given up"
        self._errors.append(error)
        if self._actors:  # else it is how the run ends
            self._progress.warn(f"engine {seat.number} is given up: {error}")

    def _show_news(self) -> None:
        for report in self._at_desk("news"):
            self._states[report.seat], self._nodes[report.seat] = report.state, report.node
            for row in report.rows:
                self._progress.row(row)
        counts = Counter(self._states.values())
        text = ", ".join(f"{count} x {state}" if len(self._seats) > 1 else state for state, count in counts.items())
        if text != self._shown:
            self._shown = text
            self._progress.state(text)

    def _at_desk(self, method: str) -> Any:
        try:
            return ray.get(getattr(self._desk, method).remote())
        except RayError as error:
            raise EngineError("engine_dead", f"the actor that engines report to is gone: {_reason(error)}") from None


def _reason(error: RayError) -> str:
    """What Ray says of a death, in one line and without its guesses."""
    return " ".join(str(error).split()).partition(" Some common causes")[0]
