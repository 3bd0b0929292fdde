"""Words for counts, and for names that nobody knows."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 row`, `2 rows`; `many` where it is not `one` with an s: `counted(n, "row is", "rows are")`."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def did_you_mean(name: str, known: Iterable[str], *, otherwise: str = "", then: str = "") -> str:
    """`Did you mean 'fps'?` for a name that is like a known one, else `otherwise`; behind it what is said `then`."""
    near = difflib.get_close_matches(name, list(known), n=1)
    hint = f"Did you mean {near[0]!r}?" if near else otherwise
    return f"{hint} {then}".strip()
