"""Whether the failed rows of a run are few enough. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from vidpipe.recipe.schema import Output, ToleranceByCause, Tolerated

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


class FailureLimit:
    """Tells when so many rows have failed that a run cannot end within its tolerance any more.

    Only a tolerance that somebody wrote ends a run: by default every row gets its turn.

    It counts what all processes of the run have recorded, as far as this one has seen it.

    Args:
        output: The recipe's.
        rows: Rows of the whole run; shares are of these.
    """

    def __init__(self, output: Output, rows: int) -> None:
        self._tolerance = output.tolerance if "tolerance" in output.model_fields_set else None
        self._rows, self._counts = rows, Counter[str]()
        self._shards: dict[int, Counter[str]] = {}

    @property
    def counts(self) -> bool:
        """Whether there is a tolerance to keep to."""
        return self._tolerance is not None

    @property
    def seen(self) -> Mapping[int, Mapping[str, int]]:
        """The rows a status that each shard has recorded, as far as this process knows."""
        return self._shards

    def see(self, shard: int, statuses: Mapping[str, int]) -> None:
        """Take note of the rows a status that a shard has recorded by now."""
        self._counts.subtract(self._shards.get(shard, {}))
        self._shards[shard] = Counter(statuses)
        self._counts.update(statuses)

    def see_all(self, statuses: Mapping[int, Mapping[str, int]]) -> None:
        """Take note of several shards, by their number."""
        for shard, counts in statuses.items():
            self.see(shard, counts)

    @property
    def exceeded(self) -> bool:
        """Whether the run would not be within its tolerance if all rows still to come were answered."""
        if self._tolerance is None:
            return False
        to_come = max(0, self._rows - self._counts.total())
        return not tolerated({**self._counts, "ok": self._counts["ok"] + to_come}, self._tolerance)
