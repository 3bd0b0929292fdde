"""Workers of different speeds end together, as long as no single clip outlasts the rest."""

from __future__ import annotations

from tests.perf.cluster_simulation import ratios


def test_the_mean_makespan_is_near_the_ideal() -> None:
    found = ratios(2.5)
    assert not any(by_one_clip for _, by_one_clip in found)
    assert sum(ratio for ratio, _ in found) / len(found) <= 1.03
    assert max(ratio for ratio, _ in found) <= 1.05
    for ratio, by_one_clip in ratios(1.5):
        assert by_one_clip or ratio <= 1.03
