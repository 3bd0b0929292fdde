"""Who works on which shard: leases that a heartbeat keeps, and that others take over when it stops.

A lease is a file made once (first writer wins), named by shard and attempt. Its time
stamp is the heartbeat; ages are measured by the clock that stamps the files. A process
that was stopped and wakes up again finds a newer attempt and lets go; if it does not
notice in time, nothing is lost or doubled either: it writes to files of its own, and
only one done mark can be made.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from vidpipe.record.disk import read_mark, set_mark
from vidpipe.record.holder import is_gone, this_process
from vidpipe.record.run_dir import RunDir

GIVEN_BACK_S, DIED_S = 0.0, 1.0
"""Time stamps of a lease whose holder let go in order, and of one whose engine died; both are free at once."""
BEATS_A_LEASE = 10


@dataclass
class Lease:
    """The right of this process to work on a shard, as attempt number `attempt`."""

    run_dir: RunDir
    shard: int
    attempt: int
    lost: bool = field(default=False)
    """Whether another process holds a newer attempt."""

    def beat(self) -> None:
        """Say that this process is alive; notice when the shard is no longer its own."""
        if self.run_dir.claim_file(self.shard, self.attempt + 1).exists():
            self.lost = True
            return
        try:
            os.utime(self.run_dir.claim_file(self.shard, self.attempt))
        except FileNotFoundError:  # somebody began the run afresh
            self.lost = True

    def give_back(self, *, died: bool) -> None:
        """Let others take the shard at once.

        Args:
            died: The engine died: the rows that it was at are suspects, as after a crash of the process.
        """
        if not self.lost:
            stamp_s = DIED_S if died else GIVEN_BACK_S
            with suppress(FileNotFoundError):
                os.utime(self.run_dir.claim_file(self.shard, self.attempt), (stamp_s, stamp_s))


def was_given_back(run_dir: RunDir, shard: int, attempt: int) -> bool:
    """Whether an attempt ended in order (True) or its process vanished."""
    try:
        return run_dir.claim_file(shard, attempt).stat().st_mtime == GIVEN_BACK_S
    except FileNotFoundError:
        return True


def take(
    run_dir: RunDir, shard: int, last: int, now_s: float, lease_s: float, cost_per_s: float | None = None
) -> Lease | None:
    """A lease on `shard`, or None while another process holds one.

    Args:
        run_dir: The run.
        shard: A shard without a done mark.
        last: Its latest attempt, 0 if there was none.
        now_s: `server_now_s` of the claims' folder.
        lease_s: Age of a heartbeat after which its process counts as gone.
        cost_per_s: This process's speed, for others to read; None when it is not known.
    """
    if last and is_alive(run_dir, shard, last, now_s, lease_s):
        return None
    holder = this_process() | {"cost_per_s": cost_per_s}
    if not set_mark(run_dir.claim_file(shard, last + 1), holder, durable=False):
        return None
    return Lease(run_dir, shard, last + 1)


def heartbeat_age_s(run_dir: RunDir, shard: int, attempt: int, now_s: float) -> float:
    """Seconds since the last sign of life; infinite when the lease was given back or is gone."""
    try:
        beat_s = run_dir.claim_file(shard, attempt).stat().st_mtime
    except FileNotFoundError:
        return float("inf")
    return float("inf") if beat_s in (GIVEN_BACK_S, DIED_S) else now_s - beat_s


def is_alive(run_dir: RunDir, shard: int, attempt: int, now_s: float, lease_s: float) -> bool:
    """Whether the holder of an attempt has to be taken for alive; see `live_holder`."""
    return live_holder(run_dir, shard, attempt, now_s, lease_s) is not None


def live_holder(run_dir: RunDir, shard: int, attempt: int, now_s: float, lease_s: float) -> dict[str, Any] | None:
    """What the holder of an attempt says of itself, empty while its mark is not whole; None when it is gone.

    A heartbeat from the future is none: the clock that stamps it was set back, and a
    living holder will soon stamp anew.
    """
    if abs(heartbeat_age_s(run_dir, shard, attempt, now_s)) >= lease_s:
        return None
    holder = read_mark(run_dir.claim_file(shard, attempt)) or {}
    return None if holder and is_gone(holder) else holder


class Heart:
    """A thread that keeps this process's leases alive, also while the engine computes."""

    def __init__(self, lease_s: float) -> None:
        self._held: dict[int, Lease] = {}
        self._interval_s = lease_s / BEATS_A_LEASE
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._thread.start()

    def keep(self, lease: Lease) -> None:
        """Keep `lease` alive from now on."""
        self._held[lease.shard] = lease

    def drop(self, lease: Lease) -> None:
        """Keep it no longer."""
        self._held.pop(lease.shard, None)

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._interval_s):
            held: Collection[Lease] = list(self._held.values())
            for lease in held:
                with suppress(OSError):  # a file server that is away for a moment
                    lease.beat()
