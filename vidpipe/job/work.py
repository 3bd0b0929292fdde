"""What becomes of a clip on its way to the engine: decoded, then prepared for all its rows at once.

A worker process does both; with `feed.prepare: engine` the second half is done beside
the engine.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from vidpipe.engine.interface import EngineInput, Preparer, Request
from vidpipe.errors import MediaError, RowError
from vidpipe.job.codec import clip_as_frames, codec_clip, seen_as_frames, seen_on_canvases
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
    if clip.first.settings.sampling.video_backend == "codec" and clip.first.row.media:
        return _with_codec(reader, preparer, clip)
    return prepare(reader.recipe, preparer, clip, reader.read(clip))


def _with_codec(reader: ClipReader, preparer: Preparer, clip: Clip) -> ClipInputs:
    try:
        with codec_clip(reader, clip) as decoded:
            return prepare(reader.recipe, preparer, clip, decoded)
    except MediaError as error:
        clip = clip_as_frames(clip, error)
        inputs = prepare(reader.recipe, preparer, clip, reader.read(clip))
        return replace(inputs, seen=seen_as_frames(inputs.seen, error))


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
    seen = decoded.seen
    if prepared.canvases is not None:
        seen = seen_on_canvases(seen, prepared.canvases, decoded.file_times_s)
    return ClipInputs(prepared.inputs, seen, prepare_s, prepared.media_bytes, time.monotonic())
