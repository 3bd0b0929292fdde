"""`vidpipe trace`: one pure rule over JSON lines, for comparison with vectors of upstream's functions."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def trace(kind: Annotated[str, typer.Argument(metavar="KIND", help="Name of a file of golden vectors.")]) -> None:
    """Read lines {"id", "input"} on standard input, write lines {"id", "output"} on standard output.

    Where upstream raises, the key that the vectors call `error` or `*_error` holds the
    exception's type name, else null. A kind without such a key gives {"error": "TypeName"}.
    """
    import json

    from vidpipe.cli.trace_kinds import get_rule
    from vidpipe.errors import RecipeError

    rule = get_rule(kind)
    for number, line in enumerate(sys.stdin, 1):
        if not line.strip():
            continue
        try:
            case = json.loads(line)
            name, given = case["id"], case["input"]
        except (ValueError, KeyError, TypeError):
            raise RecipeError(
                f'standard input, line {number}: not {{"id": ..., "input": {{...}}}}. Found {line.strip()[:60]!r}.'
            ) from None
        try:
            output = rule(given)
        except Exception as error:  # one input that a rule does not take must not cost the others
            output = {"error": type(error).__name__}
        typer.echo(json.dumps({"id": name, "output": output}))
