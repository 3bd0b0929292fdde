"""Workers of different speeds end together, also where one clip is as much work as a worker's whole share."""

from __future__ import annotations

import pytest

from tests.perf.cluster_simulation import Trouble, costliest_first, ratios


def mean(found: list[float]) -> float:
    return sum(found) / len(found)


@pytest.mark.parametrize("shape", [1.5, 2.5])
def test_the_mean_makespan_is_near_the_ideal(shape: float) -> None:
    assert mean(ratios(shape)) <= 1.03


def test_usual_clips_never_take_much_longer() -> None:
    assert max(ratios(2.5)) <= 1.05


def test_what_is_known_of_speeds_helps_also_when_it_is_half_wrong() -> None:
    trouble = Trouble(starts=0.05, error=0.3, deaths=1)
    assert mean(ratios(1.5, trouble)) < mean(ratios(1.5, trouble, costliest_first))
