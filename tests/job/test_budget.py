"""Bytes in flight: in line, never above the limit, a large one alone."""

from __future__ import annotations

import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest

from vidpipe.job.budget import ByteBudget, Place


def test_those_who_fit_enter_and_the_next_waits_in_line() -> None:
    budget = ByteBudget(100)
    first, second, large, small = (budget.queue() for _ in range(4))
    entered: list[Place] = []

    def enter(place: Place, nbytes: int) -> None:
        budget.enter(place, nbytes)
        entered.append(place)

    with ThreadPoolExecutor(4) as threads:
        enter(first, 60)
        enter(second, 40)
        threads.submit(enter, small, 1)
        waiting = threads.submit(enter, large, 500)
        time.sleep(0.05)
        assert entered == [first, second]
        budget.leave(second)
        time.sleep(0.05)
        assert entered == [first, second], "a small one does not pass a large one that came before"
        budget.leave(first)
        waiting.result(10)
        assert entered[2] is large and budget.peak == 500, "above the limit it passes alone"
        budget.resize(large, 30)
    assert entered[3] is small and budget.peak == 500


def test_leaving_twice_gives_back_once() -> None:
    budget = ByteBudget(10)
    place = budget.queue()
    budget.enter(place, 10)
    budget.leave(place)
    budget.leave(place)
    other = budget.queue()
    budget.enter(other, 10)
    assert budget.peak == 10


@pytest.mark.parametrize("how", ["close", "clear"])
def test_nobody_waits_for_ever(how: str) -> None:
    budget = ByteBudget(10)
    budget.enter(budget.queue(), 10)
    late = budget.queue()
    failed: list[BaseException] = []

    def enter() -> None:
        try:
            budget.enter(late, 5)
        except CancelledError as error:
            failed.append(error)

    thread = threading.Thread(target=enter)
    thread.start()
    getattr(budget, how)()
    thread.join(10)
    assert failed and not thread.is_alive()
