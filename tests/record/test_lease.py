"""Leases: one process at a shard, for as long as its heart beats."""

import os
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.record.runs import LEASE_S, claim, make_run
from vidpipe.record.disk import set_mark
from vidpipe.record.holder import is_gone, this_process
from vidpipe.record.lease import (
    DIED_S,
    GIVEN_BACK_S,
    Heart,
    Lease,
    heartbeat_age_s,
    is_alive,
    take,
    was_given_back,
)


def test_a_lease_is_one_process_s(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", [["r0"]])
    lease = claim(run_dir, 0)
    assert lease is not None and claim(run_dir, 0) is None
    heart = Heart(lease_s=0.1)
    heart.keep(lease)
    before = run_dir.claim_file(0, 1).stat().st_mtime_ns
    time.sleep(0.2)
    heart.stop()
    assert run_dir.claim_file(0, 1).stat().st_mtime_ns > before
    lease.give_back(died=True)
    assert run_dir.claim_file(0, 1).stat().st_mtime == DIED_S
    again = claim(run_dir, 0)
    assert again is not None and again.attempt == 2


@pytest.mark.parametrize("age_s", [-LEASE_S, 0.5 - LEASE_S, 0.0, LEASE_S - 0.5, LEASE_S])
def test_a_heartbeat_counts_for_the_length_of_a_lease(tmp_path: Path, age_s: float) -> None:
    run_dir = make_run(tmp_path / "run", [["r0"]])
    claim_file = run_dir.claim_file(0, 1)
    assert set_mark(claim_file, {**this_process(), "host": "elsewhere"})
    os.utime(claim_file, (1000.0, 1000.0))
    now_s = 1000.0 + age_s
    assert heartbeat_age_s(run_dir, 0, 1, now_s) == age_s
    assert is_alive(run_dir, 0, 1, now_s, LEASE_S) is (abs(age_s) < LEASE_S)
    assert (take(run_dir, 0, 1, now_s, LEASE_S) is None) is (abs(age_s) < LEASE_S)


def test_a_lease_that_was_let_go_is_free_at_once(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", [["r0"]])
    lease = claim(run_dir, 0)
    assert lease is not None and is_alive(run_dir, 0, 1, time.time(), LEASE_S)
    assert not was_given_back(run_dir, 0, 1)
    for died, stamp_s in ((True, DIED_S), (False, GIVEN_BACK_S)):
        lease.give_back(died=died)
        assert was_given_back(run_dir, 0, 1) is not died
        assert heartbeat_age_s(run_dir, 0, 1, stamp_s) == float("inf"), "whatever the clock says"
    os.utime(run_dir.claim_file(0, 1), (5.0, 5.0))
    Lease(run_dir, 0, 1, lost=True).give_back(died=False)
    assert not was_given_back(run_dir, 0, 1), "it is no longer its own to give"


def test_a_lease_of_a_run_begun_afresh_is_lost(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", [["r0"]])
    lease = claim(run_dir, 0)
    assert lease is not None
    lease.beat()
    assert not lease.lost
    run_dir.claim_file(0, 1).unlink()
    lease.give_back(died=True)
    lease.beat()
    assert lease.lost and was_given_back(run_dir, 0, 1)
    assert heartbeat_age_s(run_dir, 0, 1, 0.0) == float("inf")


def test_a_heart_beats_for_the_leases_that_it_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_dir = make_run(tmp_path / "run", [["r0"], ["r1"]])
    leases = [claim(run_dir, shard) for shard in (0, 1)]
    beats: list[int] = []

    def beat(lease: Lease) -> None:
        beats.append(lease.shard)
        raise OSError("the file server is away")

    monkeypatch.setattr(Lease, "beat", beat)
    heart = Heart(lease_s=0.05)
    for lease in leases:
        assert lease is not None
        heart.keep(lease)
    assert leases[0] is not None
    heart.drop(leases[0])
    heart.drop(leases[0])
    before, deadline_s = Counter(beats), time.monotonic() + 10
    while beats.count(1) < before[1] + 3 and time.monotonic() < deadline_s:
        time.sleep(0.005)
    heart.stop()
    after = Counter(beats)
    assert after[1] - before[1] >= 3 and after[0] - before[0] <= 1, "one round may have been under way"
    time.sleep(0.02)
    assert Counter(beats) == after


def test_a_dead_process_of_this_host_is_seen_at_once() -> None:
    alive = this_process()
    assert not is_gone(alive)
    assert is_gone({**alive, "began": "1"}), "its number belongs to another process now"
    assert is_gone({**alive, "pid": 2**22 + 1})
    assert not is_gone({**alive, "pid": 2**22 + 1, "host": "elsewhere"})
    assert not is_gone({**alive, "pid": 2**22 + 1, "namespace": "pid:[1]"})
