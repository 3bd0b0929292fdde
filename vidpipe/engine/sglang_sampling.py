"""How answers are decoded, in SGLang's words. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from vidpipe.errors import RowError
from vidpipe.recipe.schema import Generation

SEEDED = "enable_deterministic_inference"
"""Argument of SGLang's without which it takes no notice of a request's seed."""
NO_SEED = (
    f"SGLang takes no notice of it without engine.args.{SEEDED}: true. Set that, or remove the seed (a retry above "
    "temperature 0 sets one)."
)


def sampling_params(generation: Generation, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """SGLang's `sampling_params` of a request.

    Args:
        generation: Of the row.
        arguments: The engine's.

    Raises:
        RowError: `bad_value`, a seed that would be left out.
    """
    seeded = bool(arguments.get(SEEDED))
    if generation.seed is not None and generation.temperature > 0 and not seeded:
        raise RowError("bad_value", f"generation.seed: {NO_SEED}")
    values: dict[str, Any] = {
        "max_new_tokens": generation.max_tokens,
        "temperature": generation.temperature,
        "top_p": generation.top_p,
        "stop": list(generation.stop) or None,
        "sampling_seed": generation.seed if seeded else None,
        "json_schema": None if generation.json_schema is None else json.dumps(generation.json_schema),
        "regex": generation.regex,
        "ebnf": None if generation.choice is None else one_of(generation.choice),
    }
    return {key: value for key, value in values.items() if value is not None}


def one_of(choices: list[str]) -> str:
    """A grammar of a few fixed texts; its strings are written as those of JSON are."""
    return "root ::= " + " | ".join(json.dumps(choice) for choice in choices)
