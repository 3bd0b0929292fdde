"""How far a run is, from its directory alone: read by `vidpipe status` on any host, at any time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from vidpipe.errors import RecipeError
from vidpipe.record.disk import server_now_s
from vidpipe.record.failures import Failed
from vidpipe.record.run_dir import RunDir
from vidpipe.record.shards import Sizes, read_sizes
from vidpipe.record.tally import Tally
from vidpipe.record.workers import Worker, find_workers


@dataclass(frozen=True)
class RunStatus:
    """A run at one moment."""

    rows: int = 0
    recorded: int = 0
    statuses: Mapping[str, int] = field(default_factory=dict)
    failures: tuple[Failed, ...] = ()
    """Recorded rows with an error, the most frequent kind first."""
    shards: int = 0
    shards_done: int = 0
    workers: tuple[Worker, ...] = ()
    """Processes whose heartbeat is younger than the lease."""
    lost: tuple[Worker, ...] = ()
    """Processes that died or are cut off, and whose shards nobody has taken over."""
    rows_per_s: float | None = None
    """Of the processes at work, as they say; None where none has said so."""
    seconds_left: float | None = None
    """At that speed, by predicted cost; 0 when all rows are recorded."""


class StatusReader:
    """Reads the state of one run; a second look costs little.

    Args:
        folder: The run directory.
    """

    def __init__(self, folder: Path) -> None:
        self._run_dir = RunDir(folder)
        self._tally = Tally(self._run_dir)

    def read(self) -> RunStatus:
        """Its state now.

        Raises:
            RecipeError: there is no run.
        """
        run_dir, run = self._run_dir, self._run_dir.read_run()
        if run is None and run_dir.claims.is_dir():  # submitted, and no task has begun yet
            return RunStatus()
        if run is None:
            raise RecipeError(
                f"{run_dir.path} is not a run directory (it has no run.json). Type the -o of a vidpipe run."
            )
        sizes = read_sizes(run_dir)
        self._tally.look()
        by_shard, done = self._tally.statuses, run_dir.done_shards()
        statuses: Counter[str] = Counter()
        for counts in by_shard.values():
            statuses.update(counts)
        workers = find_workers(run_dir, done, server_now_s(run_dir.claims), run["lease_s"])
        rates = [worker.rows_per_s for worker in workers.at_work if worker.rows_per_s]
        recorded, rows = statuses.total(), sum(sizes.rows.values())
        return RunStatus(
            rows=rows,
            recorded=recorded,
            statuses=dict(statuses),
            failures=self._tally.failures.most_first,
            shards=len(sizes.rows),
            shards_done=len(done),
            workers=workers.at_work,
            lost=workers.lost,
            rows_per_s=sum(rates) if rates else None,
            seconds_left=0.0 if rows and recorded >= rows else _seconds_left(sizes, by_shard, workers.at_work),
        )


def read_status(folder: Path) -> RunStatus:
    """See `StatusReader.read`."""
    return StatusReader(folder).read()


def statuses_by_shard(run_dir: RunDir) -> dict[int, Counter[str]]:
    """Rows a status that each shard has recorded so far, by whichever process."""
    tally = Tally(run_dir)
    tally.look()
    return tally.statuses


def _seconds_left(sizes: Sizes, by_shard: Mapping[int, Mapping[str, int]], workers: tuple[Worker, ...]) -> float | None:
    """What is left by predicted cost, at the speed of the workers on what they hold."""
    left = {
        shard: max(0, rows - sum(by_shard.get(shard, {}).values())) * sizes.cost_a_row(shard)
        for shard, rows in sizes.rows.items()
    }
    mean = sum(sizes.cost.values()) / max(1, sum(sizes.rows.values()))
    speed = 0.0
    for worker in workers:
        own = [sizes.cost_a_row(shard) for shard in worker.shards if shard in sizes.rows] or [mean]
        speed += (worker.rows_per_s or 0.0) * sum(own) / len(own)
    return sum(left.values()) / speed if speed else None
