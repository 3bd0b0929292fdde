"""Rows that no engine can answer, recorded without one: a start costs minutes and changes nothing for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from vidpipe.errors import MediaError
from vidpipe.job import outcome
from vidpipe.job.decoded import Decoded
from vidpipe.job.feed import ShardFeed, Task
from vidpipe.job.predicted import summed
from vidpipe.job.settings import Resolver
from vidpipe.job.tolerance import MEDIA_STATUSES

WAIT_S = 0.05


def rows_in_vain(predicted: Sequence[Mapping[str, int]], rows: int, recorded: Sequence[Mapping[str, int]]) -> int:
    """Rows still to come, if headers and values promise an answer to none of them; else 0. Pure.

    Args:
        predicted: What was predicted with each plan of the run; where one has nothing, nothing is known.
        rows: Rows of all plans.
        recorded: Rows a status that each shard has recorded.
    """
    done = sum(sum(statuses.values()) for statuses in recorded)
    failed = sum(statuses.get(status, 0) for statuses in recorded for status in MEDIA_STATUSES)
    known = summed(predicted)
    return rows - done if known and done - failed >= rows - known["failed_rows"] else 0


def record_unreadable(feed: ShardFeed, resolver: Resolver, task: Task, error: MediaError) -> int:
    """Record that a clip's rows cannot run; how many of them are done with (`retry.rules` may ask again)."""
    settled = 0
    for planned in task.clip.rows:
        resolved = resolver.resolve(planned.settings)
        settled += feed.settle(task, planned, outcome.unreadable(planned, resolved, error), resolved)
    return settled


def record_in_vain(decoded: Decoded, feed: ShardFeed, resolver: Resolver, stop: Callable[[], bool]) -> bool | None:
    """Record rows whose clips cannot be read, as long as nothing else comes.

    Returns:
        True when every shard is done, False when `stop` said so before; None where a clip can be read after all,
        which stays with `decoded`: it takes an engine.
    """
    while not stop():
        decoded.top_up()
        while (arrival := decoded.next_unreadable()) is not None:
            record_unreadable(feed, resolver, arrival.task, arrival.error)
        feed.tick()
        if decoded.has_readable:
            return None
        if decoded:
            decoded.wait(WAIT_S)
        elif feed.finished:
            return True
        else:  # other processes have the rest
            time.sleep(WAIT_S)
    return False
