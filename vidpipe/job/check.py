"""Every fault of a manifest, in memory that hardly grows with it: rows are looked at and forgotten."""

from __future__ import annotations

import gc
from dataclasses import dataclass

from vidpipe.engine.text_tokens import TextTokens
from vidpipe.errors import MediaKind
from vidpipe.job.forecast import context_of
from vidpipe.job.media_present import MediaPresence
from vidpipe.job.prospect import Named
from vidpipe.manifest.row import BadRow, Fault, FaultKind
from vidpipe.manifest.scan import Manifest
from vidpipe.plan.advice import CONTEXT_KEYS
from vidpipe.plan.clips import RowResolver


@dataclass(frozen=True)
class Found:
    """Something wrong with the manifest, or with a file that a row of it names."""

    kind: FaultKind | MediaKind
    message: str
    line: int | None
    id: str | None


@dataclass(frozen=True)
class Checked:
    """What a manifest is worth."""

    rows: int
    faults: list[Found]
    """In file order: of the file if it is refused, else of its rows."""
    refused: bool

    @property
    def in_vain(self) -> bool:
        """Whether a run could answer no row: each has a fault, of which there is one a row."""
        return not self.refused and 0 < self.rows == len(self.faults)


def check_rows(named: Named) -> Checked:
    """Look at every row of the manifest as a run would.

    Raises:
        RecipeError, CapabilityError: see `Named.rows`.
    """
    recipe = named.recipe
    context = context_of(recipe.engine.args, named.checkpoint.config)
    texts = TextTokens(named.checkpoint.location)
    resolver = RowResolver(recipe, named.family, named.checkpoint.processor(named.family))
    presence = MediaPresence(named.reader)
    manifest = Manifest()
    faults: list[Found] = []
    was_on = gc.isenabled()
    gc.disable()  # nothing here makes cycles, and looking for them takes a fifth of the time
    try:
        for row in named.rows(manifest):
            found = resolver.resolve(row)
            if isinstance(found, BadRow):
                faults.append(_found(found.fault))
                continue
            line, row_id = found.row.line, found.row.id
            if (missing := presence.fault(found.row)) is not None:
                faults.append(Found(missing.kind, f"line {line}, row {row_id!r}: {missing}", line, row_id))
            elif context is not None and (tokens := texts.at_least(found.messages, context - 1)) >= context:
                message = (
                    f"line {line}, row {row_id!r}: its texts alone have {tokens} tokens, and the context has "
                    f"{context}. Shorten them, or raise engine.args.{CONTEXT_KEYS[recipe.engine.name]}."
                )
                faults.append(Found("prompt_too_long", message, line, row_id))
    finally:
        if was_on:
            gc.enable()
    refusing = list(map(_found, manifest.faults))
    return Checked(manifest.count, refusing if manifest.refused else faults, manifest.refused)


def _found(fault: Fault) -> Found:
    return Found(fault.kind, fault.message, fault.line, fault.id)
