"""The processes on a run, by their leases and by what they say of themselves."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from vidpipe.record.bulletin import Bulletin, read_bulletins
from vidpipe.record.disk import read_mark
from vidpipe.record.holder import is_gone
from vidpipe.record.lease import BEATS_A_LEASE, heartbeat_age_s
from vidpipe.record.run_dir import RunDir

LATE_BEATS = 3
"""Heartbeats that a process may miss before it counts as late."""


@dataclass(frozen=True)
class Worker:
    """A process."""

    host: str
    pid: int
    shards: tuple[int, ...]
    """Those that it holds, not finished yet."""
    heartbeat_age_s: float
    slurm_task: str | None
    """The task that it is, as Slurm's commands call it."""
    late: bool = False
    """Whether its heartbeat is overdue."""
    recorded: int | None = None
    """Rows; None, as below, for a process that has not said so yet."""
    rows_per_s: float | None = None
    phase: str | None = None
    """See `job.progress.Phase`."""
    waits_for: str | None = None
    """See `job.gauges.WaitsFor`; None while its engine has work."""
    message: str | None = None
    """Its last words."""


@dataclass(frozen=True)
class Workers:
    """All that have not ended in order."""

    at_work: tuple[Worker, ...]
    lost: tuple[Worker, ...]
    """Processes that died or are cut off, and whose shards nobody has taken over."""


def find_workers(run_dir: RunDir, done: Collection[int], now_s: float, lease_s: float) -> Workers:
    """Look at the latest lease of each shard that is not done.

    Args:
        run_dir: The run.
        done: Shards that are.
        now_s: `server_now_s` of the claims' folder.
        lease_s: Age of a heartbeat after which its process counts as gone.
    """
    holders: dict[tuple[Any, ...], tuple[Mapping[str, Any], dict[int, float]]] = {}
    for shard, attempt in run_dir.latest_attempts().items():
        if shard in done:
            continue
        holder = read_mark(run_dir.claim_file(shard, attempt))
        age_s = heartbeat_age_s(run_dir, shard, attempt, now_s)
        if holder and not math.isinf(age_s):
            holders.setdefault(_key(holder), (holder, {}))[1][shard] = age_s
    said = {_key(bulletin.holder): bulletin for bulletin in read_bulletins(run_dir, now_s)}
    for key, bulletin in said.items():
        if key not in holders and _lives(bulletin.holder, bulletin.age_s, lease_s):
            holders[key] = (bulletin.holder, {})
    at_work: list[Worker] = []
    lost: list[Worker] = []
    for key, (who, ages_s) in sorted(holders.items(), key=lambda found: (str(found[0][0]), found[0][1])):
        bulletin_of = said.get(key)
        age_s = min(ages_s.values()) if ages_s else bulletin_of.age_s if bulletin_of else math.inf
        worker = _worker(who, ages_s, age_s, bulletin_of, late_s=LATE_BEATS * lease_s / BEATS_A_LEASE)
        (at_work if _lives(who, age_s, lease_s) else lost).append(worker)
    return Workers(tuple(at_work), tuple(lost))


def _key(holder: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(holder.get(name) for name in ("host", "pid", "boot", "namespace", "began"))


def _lives(holder: Mapping[str, Any], age_s: float, lease_s: float) -> bool:
    return abs(age_s) < lease_s and not is_gone(holder)  # from the future: see `lease.live_holder`


def _worker(
    holder: Mapping[str, Any], shards: Collection[int], age_s: float, bulletin: Bulletin | None, *, late_s: float
) -> Worker:
    said: Mapping[str, Any] = {} if bulletin is None else bulletin.values
    return Worker(
        host=holder["host"],
        pid=holder["pid"],
        shards=tuple(sorted(shards)),
        heartbeat_age_s=age_s,
        slurm_task=holder.get("slurm_task"),
        late=age_s > late_s,
        recorded=said.get("recorded_here"),
        rows_per_s=said.get("rows_per_s_here"),
        phase=said.get("phase"),
        waits_for=said.get("waits_for"),
        message=said.get("message"),
    )
