"""Whether the failed rows of a run are few enough. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from vidpipe.recipe.schema import ToleranceByCause, Tolerated

MEDIA_STATUSES = ("media_error", "row_error")
ENGINE_STATUSES = ("engine_error",)


def tolerated(counts: Mapping[str, int], tolerance: Tolerated | ToleranceByCause) -> bool:
    """Whether a run with `counts` rows a status is within `tolerance`.

    A whole number is a count of rows, a number below 1 a share of all rows.
    """
    total = sum(counts.values())

    def failed(statuses: tuple[str, ...]) -> int:
        return sum(counts.get(status, 0) for status in statuses)

    if isinstance(tolerance, ToleranceByCause):
        return _within(failed(MEDIA_STATUSES), total, tolerance.media) and _within(
            failed(ENGINE_STATUSES), total, tolerance.engine
        )
    return _within(failed(MEDIA_STATUSES + ENGINE_STATUSES), total, tolerance)


def _within(failed: int, total: int, limit: Tolerated) -> bool:
    return failed <= limit if isinstance(limit, int) else failed <= limit * total
