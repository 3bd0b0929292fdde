"""Every fault of a manifest, in memory that hardly grows with it: rows are looked at and forgotten."""

from __future__ import annotations

import gc
from dataclasses import dataclass

from vidpipe.engine.text_tokens import TextTokens
from vidpipe.job.forecast import context_of
from vidpipe.job.prospect import Named
from vidpipe.manifest.row import BadRow, Fault
from vidpipe.manifest.scan import Manifest
from vidpipe.plan.advice import CONTEXT_KEYS
from vidpipe.plan.clips import RowResolver


@dataclass(frozen=True)
class Checked:
    """What a manifest is worth."""

    rows: int
    faults: list[Fault]
    """In file order: of the file if it is refused, else of its rows."""
    refused: bool


def check_rows(named: Named) -> Checked:
    """Look at every row of the manifest as a run would.

    Raises:
        RecipeError, CapabilityError: see `Named.rows`.
    """
    recipe = named.recipe
    context = context_of(recipe.engine.args, named.checkpoint.config)
    texts = TextTokens(named.checkpoint.location)
    resolver = RowResolver(recipe, named.family, named.checkpoint.processor(named.family))
    manifest = Manifest()
    faults: list[Fault] = []
    was_on = gc.isenabled()
    gc.disable()  # nothing here makes cycles, and looking for them takes a fifth of the time
    try:
        for row in named.rows(manifest):
            found = resolver.resolve(row)
            if isinstance(found, BadRow):
                faults.append(found.fault)
            elif context is not None and (tokens := texts.at_least(found.messages, context - 1)) >= context:
                message = (
                    f"line {found.row.line}, row {row.id!r}: its texts alone have {tokens} tokens, and the context has "
                    f"{context}. Shorten them, or raise engine.args.{CONTEXT_KEYS[recipe.engine.name]}."
                )
                faults.append(Fault("prompt_too_long", message, found.row.line, row.id))
    finally:
        if was_on:
            gc.enable()
    return Checked(manifest.count, manifest.faults if manifest.refused else faults, manifest.refused)
