"""Who takes a clip of many times the usual cost, in runs of the scripted engine."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.job.test_feeding import Noting, go, windows
from tests.job.test_run import rows_of
from vidpipe.job import feed
from vidpipe.job.feed import ShardFeed
from vidpipe.job.prepare import ClipReader
from vidpipe.record.disk import read_mark
from vidpipe.record.holder import this_process
from vidpipe.record.lease import GIVEN_BACK_S, is_alive
from vidpipe.record.run_dir import RunDir
from vidpipe.record.shards import read_shards

Make = Callable[..., Path]


def with_one_large_clip(make_run: Make, make_clip: Make, **settings: Any) -> Path:
    """40 clips and one of a hundred times their size; alone it is far more than four mean shards."""
    make_clip("large.mp4", frames=60, width=640, height=480)
    return make_run([*windows(80), {"id": "large", "video": "large.mp4", "question": "?"}], **settings)


def planned(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> RunDir:
    """A run that has its plan, and of which nothing was taken."""
    with monkeypatch.context() as patch:
        patch.setattr(ShardFeed, "next_task", lambda self: None)
        patch.setattr(ShardFeed, "finished", True)
        return RunDir(go(recipe, Noting).results.parent)


def claims_of(run_dir: RunDir) -> dict[int, dict[str, Any]]:
    found = {shard: read_mark(run_dir.claim_file(shard, 1)) for shard in read_shards(run_dir).ids}
    return {shard: mark for shard, mark in found.items() if mark is not None}


def test_a_process_knows_its_speed_before_it_takes_a_clip_that_may_outlast_the_rest(
    make_run: Make, make_clip: Make
) -> None:
    result = go(with_one_large_clip(make_run, make_clip, script={"seconds_per_reply": 0.01}), ClipReader)
    run_dir = RunDir(result.results.parent)
    assert read_shards(run_dir).ids[0] == ("large",)
    speeds = {shard: mark["cost_per_s"] for shard, mark in claims_of(run_dir).items()}
    assert speeds[0] is not None and sum(speed is None for speed in speeds.values()) in range(1, len(speeds) // 2)
    assert speeds[len(speeds) - 1] is not None, "it was not left to the end"


def test_such_a_clip_is_left_to_a_faster_process_but_nobody_waits_for_that(
    make_run: Make, make_clip: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = with_one_large_clip(make_run, make_clip, feed={"workers": 1})
    run_dir, decoded = planned(recipe, monkeypatch), recipe.parent / "decoded.txt"
    claim = run_dir.claim_file(max(read_shards(run_dir).ids), 1)
    claim.write_text(json.dumps({**this_process(), "host": "far away", "cost_per_s": 1e15}) + "\n")

    def live_until_the_clip_is_taken() -> None:
        while not (decoded.exists() and "large" in decoded.read_text()):
            claim.touch()
            time.sleep(0.1)
        os.utime(claim, (GIVEN_BACK_S, GIVEN_BACK_S))

    far_away = threading.Thread(target=live_until_the_clip_is_taken, daemon=True)
    far_away.start()
    assert all(row["status"] == "ok" for row in rows_of(go(recipe, Noting)).values())
    far_away.join()
    taken = decoded.read_text().splitlines()
    assert ["large" in name for name in taken].index(True) == len(taken) - 2, "then the one that was held far away"


def test_few_leases_are_looked_at_and_all_dead_ones_found(make_run: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = make_run(windows(80))
    run_dir = planned(recipe, monkeypatch)
    shards = read_shards(run_dir).ids
    for shard in shards:  # a host that took everything, an hour ago
        claim = run_dir.claim_file(shard, 1)
        claim.write_text(json.dumps({**this_process(), "host": "far away"}) + "\n")
        os.utime(claim, (time.time() - 3600,) * 2)
    looks: list[int] = []
    monkeypatch.setattr(feed, "LEASES_A_LOOK", 3)
    monkeypatch.setattr(feed, "is_alive", lambda *given: looks.append(given[1]) or is_alive(*given))
    result = go(recipe, Noting)
    assert all(row["status"] == "ok" for row in rows_of(result).values())
    assert set(looks) == set(shards) and len(shards) < len(looks) <= 3 * (len(shards) + 1)
