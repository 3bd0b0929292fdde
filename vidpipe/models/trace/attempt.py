"""How a trace states that upstream raises: by the name of the exception's type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vidpipe.errors import MediaError


def attempt(rule: Callable[[], Any]) -> tuple[Any, str | None]:
    """The value of `rule` and None, or None and the name of the type that upstream raises.

    Upstream refuses shapes with ValueError, where vidpipe has an error of its own.
    """
    try:
        return rule(), None
    except MediaError:
        return None, "ValueError"
    except (ValueError, ZeroDivisionError, RuntimeError, IndexError) as error:
        return None, type(error).__name__
