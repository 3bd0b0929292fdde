"""Words for counts."""

from __future__ import annotations


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 row`, `2 rows`; `many` where it is not `one` with an s: `counted(n, "row is", "rows are")`."""
    return f"{count} {one if count == 1 else many or one + 's'}"
