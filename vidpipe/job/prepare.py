"""From a planned clip to frames, times and sizes: the part of a run that reads video files."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vidpipe.engine.interface import Video
from vidpipe.errors import MediaError
from vidpipe.manifest.media_path import media_path
from vidpipe.models.clock import clock_of
from vidpipe.models.family import Family, frames_to_add
from vidpipe.plan.clips import Clip
from vidpipe.recipe.schema import Recipe
from vidpipe.record.row import FramesRecord, MediaRecord
from vidpipe.video.decode import decode_frames
from vidpipe.video.timeline import read_timeline


@dataclass(frozen=True)
class SeenClip:
    """What the rows of a clip record about it; small, kept while its requests run."""

    frames: FramesRecord
    media: MediaRecord
    vision_tokens: int
    """What the family's rule gives, before pruning."""
    decode_s: float
    frame_bytes: int
    """Bytes of the decoded frames."""


@dataclass(frozen=True)
class PreparedClip:
    """A clip, decoded once for all its rows; its frames go when the last of them is submitted."""

    video: Video
    seen: SeenClip


@dataclass(frozen=True)
class ClipReader:
    """Decodes clips as one recipe and one checkpoint want them. Safe to call from threads."""

    recipe: Recipe
    family: Family
    processor: Mapping[str, Any]
    media_root: Path
    allow_outside_root: bool

    def read(self, clip: Clip) -> PreparedClip:
        """Decode the frames that the model sees.

        Raises:
            MediaError: the clip cannot be shown; its rows get an error record.
        """
        started = time.perf_counter()
        row, sampling = clip.first.row, clip.first.settings.sampling
        path = media_path(row.video, self.media_root, allow_outside=self.allow_outside_root)
        timeline = read_timeline(path)
        # Windows are seconds of playing time; the first frame of a file need not stand at 0.
        start_of_file_s = float(timeline.times_s[0])
        first, end = 0, len(timeline)
        if row.clip_start_s is not None or row.clip_end_s is not None:
            first, end = timeline.window(
                _shift(row.clip_start_s, start_of_file_s), _shift(row.clip_end_s, start_of_file_s)
            )
        fps = timeline.header_fps
        asked = [first + index for index in self.family.choose_frames(end - first, fps, sampling)]
        frames = decode_frames(path, asked, timeline=timeline)
        pixels, indices = frames.pixels, frames.indices
        missing = timeline.missing + frames.missing
        if missing and self.recipe.media.on_partial == "fail":
            raise MediaError("corrupt", f"{row.video}: {missing} frames are missing, and media.on_partial is fail.")
        repeats = frames_to_add(self.family, len(indices))
        if repeats:  # the family asked for frames that it takes; damage must not change that
            pixels = np.concatenate([pixels, np.repeat(pixels[-1:], repeats, axis=0)])
            indices = np.concatenate([indices, np.repeat(indices[-1:], repeats)])
        elapsed_s = timeline.elapsed_s[indices]
        from_clip = row.timestamps_from == "clip"
        clock = clock_of(
            indices.tolist(),
            elapsed_s.tolist(),
            first_index=first if from_clip else 0,
            frames=end - first if from_clip else len(timeline),
            fps=fps,
            zero_s=(row.clip_start_s or 0.0) if from_clip else 0.0,
            time_base=sampling.time_base,
        )
        height, width = pixels.shape[1:3]
        layout = self.family.layout(len(indices), width, height, sampling, self.processor)
        seen = SeenClip(
            frames=FramesRecord(
                count=len(indices),
                indices=indices.tolist(),
                times_s=timeline.times_s[indices].tolist(),
                size_wh=list(layout.size_wh),
                sha=hashlib.sha256(np.ascontiguousarray(pixels).data).hexdigest(),
            ),
            media=MediaRecord("ok_partial" if missing else "ok", missing, list(frames.notes)),
            vision_tokens=layout.vision_tokens,
            decode_s=time.perf_counter() - started,
            frame_bytes=pixels.nbytes,
        )
        metadata = self.family.engine_metadata(clock, sampling)
        kwargs = self.family.processor_kwargs(sampling, self.processor)
        return PreparedClip(Video(pixels, metadata, kwargs, self.family.slot_word, self.family.vision_word), seen)


def _shift(seconds: float | None, by_s: float) -> float | None:
    return None if seconds is None else seconds + by_s
