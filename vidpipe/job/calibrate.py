"""Seconds that decoding will take on this machine, from a few clips that are decoded now."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from vidpipe.errors import MediaError
from vidpipe.job.budget import ByteBudget
from vidpipe.job.decoders import Decoders
from vidpipe.job.prepare import ClipReader, Outlook
from vidpipe.plan.clips import Clip
from vidpipe.video.channel import JobFailedError

MOST_CLIPS = 12
MOST_S = 10.0


@dataclass(frozen=True)
class DecodeTime:
    """An estimate."""

    core_s: float
    """For all clips, one thread each."""
    clips: int
    """That were decoded for it."""


def decode_time(
    reader: ClipReader, clips: Sequence[Clip], outlooks: Sequence[Outlook | MediaError]
) -> DecodeTime | None:
    """Decode clips from all over the plan and scale by decoded pixels: the ratio estimator (Cochran, Sampling
    Techniques, chapter 6), which needs no model of codecs, only that the clips are of one sort.

    None where nothing could be decoded.
    """
    known = [
        (outlook.decoded_pixels, clip)
        for clip, outlook in zip(clips, outlooks, strict=True)
        if isinstance(outlook, Outlook) and outlook.decoded_pixels
    ]
    known.sort(key=lambda entry: entry[0])
    count = min(MOST_CLIPS, len(known))
    chosen = [known[(2 * n + 1) * len(known) // (2 * count)] for n in range(count)]
    until = time.monotonic() + MOST_S
    seconds = pixels = 0.0
    done = 0
    with Decoders(reader, 1, ByteBudget(1)) as decoders:
        for expected, clip in chosen:
            if time.monotonic() > until:
                break
            try:
                seconds += decoders.seconds_to_read(clip)
            except (MediaError, JobFailedError):
                continue
            pixels += expected
            done += 1
    return DecodeTime(seconds * sum(entry[0] for entry in known) / pixels, done) if pixels else None
