"""From a planned clip to frames, times and sizes: the part of a run that reads video files."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vidpipe.engine.interface import Video
from vidpipe.errors import MediaError
from vidpipe.manifest.row import Row
from vidpipe.models.clock import clock_of
from vidpipe.models.family import Family, VideoLayout, frames_to_add
from vidpipe.plan.clips import Clip
from vidpipe.plan.cost import UNKNOWN_COST, clip_cost
from vidpipe.pruning.counts import account, positions_taken
from vidpipe.recipe.schema import Pruning, Recipe, Sampling
from vidpipe.record.row import FramesRecord, MediaRecord
from vidpipe.video.cache import cached_timeline, default_index
from vidpipe.video.decode import decode_frames
from vidpipe.video.draw import ROBOTO, draw_corner_texts
from vidpipe.video.fetch import Sources
from vidpipe.video.headers import read_header
from vidpipe.video.media_path import media_path

BYTES_PER_PIXEL = 3 * 4
"""Of prepared frames: three colours as float32, which is the most that a processor makes of them."""


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
class Outlook:
    """What a header promises of a clip."""

    cost: int
    """See `plan.cost`."""
    duration_s: float
    """Of the whole file; 0 if the header does not say."""
    frames: int
    """Frames that the model will see; 0 if the header does not say."""
    vision_tokens: int
    """What the family's rule gives for them, before pruning."""
    kept_tokens: int
    """What of that stands in the prompt."""
    positions: int
    """Positions that the clip alone takes, its texts left out; what is pruned takes them too."""
    media_bytes: int
    """Upper bound of what the clip takes, decoded and prepared."""


def kept_tokens(layout: VideoLayout, pruning: Pruning | None) -> int:
    """Vision tokens that the prompt will have of a video."""
    if pruning is None:
        return layout.vision_tokens
    return account(layout.tokens_per_step, layout.grid_thw[0], pruning.method, pruning.rate).kept


@dataclass(frozen=True)
class ClipReader:
    """Decodes clips as one recipe and one checkpoint want them. Works in any process."""

    recipe: Recipe
    family: Family
    processor: Mapping[str, Any]
    media_root: Path
    allow_outside_root: bool

    def look(self, clip: Clip) -> Outlook:
        """What the clip will cost, from its header alone.

        Raises:
            MediaError: the file cannot be opened.
        """
        row, sampling = clip.first.row, clip.first.settings.sampling
        with self._file(row) as path:
            header = read_header(path)
        frames = header.frames
        if header.fps and (row.clip_start_s is not None or row.clip_end_s is not None):
            end_s = min(row.clip_end_s or math.inf, frames / header.fps)
            frames = round((end_s - (row.clip_start_s or 0.0)) * header.fps)
        if frames <= 0 or header.width <= 0 or header.height <= 0:
            return Outlook(UNKNOWN_COST, header.duration_s, 0, 0, 0, 0, UNKNOWN_COST * BYTES_PER_PIXEL)
        count = len(self.family.choose_frames(frames, header.fps, sampling))
        layout = self.family.layout(count, header.width, header.height, sampling, self.processor)
        cost = clip_cost(count, *layout.size_wh)
        media_bytes = 3 * count * header.width * header.height + BYTES_PER_PIXEL * clip_cost(count + 1, *layout.size_wh)
        kept = kept_tokens(layout, self.recipe.pruning)
        steps, *sides = layout.grid_thw
        positions = positions_taken(0, 0, steps, *(side // layout.merge for side in sides))
        return Outlook(cost, header.duration_s, count, layout.vision_tokens, kept, positions, media_bytes)

    def read(self, clip: Clip) -> PreparedClip:
        """Decode the frames that the model sees.

        Raises:
            MediaError: the clip cannot be shown; its rows get an error record.
        """
        started = time.perf_counter()
        row = clip.first.row
        with self._file(row) as path:
            return self._read(row, clip.first.settings.sampling, path, started)

    def _file(self, row: Row) -> AbstractContextManager[str]:
        media = self.recipe.media
        name = media_path(row.video, self.media_root, allow_outside=self.allow_outside_root, schemes=media.schemes)
        return Sources(frozenset(media.schemes), default_index().parent / "media", media.cache_bytes).local(name)

    def _read(self, row: Row, sampling: Sampling, path: str, started: float) -> PreparedClip:
        timeline = cached_timeline(path)
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
        sha = hashlib.sha256(np.ascontiguousarray(pixels).data).hexdigest()
        if self.family.times_in == "pixels":
            texts = self.family.time_texts(clock.times_s, sampling)
            draw_corner_texts(pixels, texts, self.processor.get("font", ROBOTO))
        seen = SeenClip(
            frames=FramesRecord(
                count=len(indices),
                indices=indices.tolist(),
                times_s=timeline.times_s[indices].tolist(),
                size_wh=list(layout.size_wh),
                sha=sha,
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
