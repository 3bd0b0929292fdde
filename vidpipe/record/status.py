"""How far a run is, from its directory alone: read by `vidpipe status` on any host, at any time."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow.compute as pc

from vidpipe.errors import RecipeError
from vidpipe.record import entries
from vidpipe.record.collect import done_marks
from vidpipe.record.disk import read_mark, server_now_s
from vidpipe.record.journal import read_journal
from vidpipe.record.lease import heartbeat_age_s, is_alive
from vidpipe.record.run_dir import RunDir
from vidpipe.record.shards import read_plan


@dataclass(frozen=True)
class Worker:
    """A process at work."""

    host: str
    pid: int
    shards: tuple[int, ...]
    heartbeat_age_s: float
    slurm_task: str | None
    """The task that it is, as Slurm's commands call it."""


@dataclass(frozen=True)
class RunStatus:
    """A run at one moment."""

    rows: int
    recorded: int
    statuses: dict[str, int]
    shards: int
    shards_done: int
    workers: tuple[Worker, ...]
    """Processes whose heartbeat is younger than the lease."""
    rows_per_s: float | None
    """Since the run began; None before the first row."""
    seconds_left: float | None


def read_status(folder: Path) -> RunStatus:
    """The state of the run in `folder`.

    Raises:
        RecipeError: there is none.
    """
    run_dir = RunDir(folder)
    run = run_dir.read_run()
    if run is None and run_dir.claims.is_dir():  # submitted, and no task has begun yet
        return RunStatus(0, 0, {}, 0, 0, (), None, None)
    if run is None:
        raise RecipeError(f"{folder} is not a run directory (it has no run.json). Type the -o of a vidpipe run.")
    lease_s = run["lease_s"]
    plan, done = read_plan(run_dir), run_dir.done_shards()
    statuses: Counter[str] = Counter()
    for counts in statuses_by_shard(run_dir).values():
        statuses.update(counts)
    now_s = server_now_s(run_dir.claims)
    holders: dict[tuple[str, int, str | None], list[tuple[int, float]]] = {}
    for shard, attempt in run_dir.latest_attempts().items():
        if shard in done:
            continue
        holder = read_mark(run_dir.claim_file(shard, attempt))
        if holder and is_alive(run_dir, shard, attempt, now_s, lease_s):
            age_s = heartbeat_age_s(run_dir, shard, attempt, now_s)
            process = (holder["host"], holder["pid"], holder.get("slurm_task"))
            holders.setdefault(process, []).append((shard, age_s))
    elapsed_s = now_s - datetime.fromisoformat(run["started"]).timestamp()
    rate = statuses.total() / elapsed_s if statuses.total() and elapsed_s > 0 else None
    return RunStatus(
        rows=plan.num_rows,
        recorded=statuses.total(),
        statuses=dict(statuses),
        shards=pc.count_distinct(plan["shard"]).as_py(),
        shards_done=len(done),
        workers=tuple(
            Worker(host, pid, tuple(sorted(shard for shard, _ in held)), min(age for _, age in held), task)
            for (host, pid, task), held in sorted(holders.items(), key=lambda found: found[0][:2])
        ),
        rows_per_s=rate,
        seconds_left=(plan.num_rows - statuses.total()) / rate if rate else None,
    )


def statuses_by_shard(run_dir: RunDir) -> dict[int, Counter[str]]:
    """Rows a status that each shard has recorded so far, by whichever process."""
    done = run_dir.done_shards()
    unfinished = {
        shard: _unfinished(run_dir, shard, attempt)
        for shard, attempt in run_dir.latest_attempts().items()
        if shard not in done
    }
    # Marks last: a shard that is finished meanwhile has no journals any more.
    return unfinished | {shard: Counter(mark["statuses"]) for shard, mark in done_marks(run_dir).items()}


def _unfinished(run_dir: RunDir, shard: int, attempts: int) -> Counter[str]:
    found: dict[str, str] = {}
    for attempt in range(1, attempts + 1):
        with suppress(FileNotFoundError):
            for line in entries.rows(read_journal(run_dir.journal_file(shard, attempt))):
                row = json.loads(line)
                found.setdefault(row["id"], row["status"])
    return Counter(found.values())
