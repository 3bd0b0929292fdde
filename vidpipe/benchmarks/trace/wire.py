"""How results look on the wire: floats that JSON lacks, and exceptions as their type's name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any


def from_wire(value: Any) -> Any:
    """A number as written, or as `{"$float": "nan" | "inf" | "-inf"}`."""
    return float(value["$float"]) if isinstance(value, Mapping) else value


def to_wire(value: Any) -> Any:
    """The reverse of `from_wire`, through lists and objects."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": str(value)}
    if isinstance(value, Mapping):
        return {key: to_wire(item) for key, item in value.items()}
    return [to_wire(item) for item in value] if isinstance(value, list | tuple) else value


def guarded(key: str, call: Callable[[], Any]) -> dict[str, Any]:
    """`{key: result}`, or `{"error": "TypeName"}` where the call raises."""
    try:
        return {key: to_wire(call())}
    except Exception as error:  # what upstream raises is part of its behaviour
        return {"error": type(error).__name__}
