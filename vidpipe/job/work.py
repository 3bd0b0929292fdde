"""What becomes of a clip on its way to the engine: decoded, then prepared for all its rows at once.

A worker process does both; with `feed.prepare: engine` the second half is done beside
the engine.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from vidpipe.engine.interface import EngineInput, Preparer, Request
from vidpipe.errors import RowError
from vidpipe.job.prepare import ClipReader, PreparedClip, SeenClip
from vidpipe.plan.clips import Clip
from vidpipe.recipe.schema import Recipe


@dataclass(frozen=True)
class ClipInputs:
    """A clip as the engine takes it."""

    inputs: tuple[EngineInput | RowError, ...]
    """One for each row of the clip, in its order."""
    seen: SeenClip
    prepare_s: float
    media_bytes: int
    done_at_s: float
    """`time.monotonic` when it was done; on Linux that clock is the same in all processes."""
    transfer_s: float = 0.0
    """Until the engine's process had it; set there."""


def read_and_prepare(reader: ClipReader, preparer: Preparer, clip: Clip) -> ClipInputs:
    """Decode a clip and prepare it for its rows.

    Raises:
        MediaError: the clip cannot be shown.
    """
    return prepare(reader.recipe, preparer, clip, reader.read(clip))


def prepare(recipe: Recipe, preparer: Preparer, clip: Clip, decoded: PreparedClip) -> ClipInputs:
    """Prepare a decoded clip for its rows."""
    started = time.perf_counter()
    requests = [
        Request(
            id=planned.row.id,
            messages=planned.messages,
            generation=planned.settings.generation,
            media=decoded.media,
            special_tokens=recipe.special_tokens,
        )
        for planned in clip.rows
    ]
    prepared = preparer.prepare(requests, decoded.identities)
    prepare_s = time.perf_counter() - started
    return ClipInputs(prepared.inputs, decoded.seen, prepare_s, prepared.media_bytes, time.monotonic())
