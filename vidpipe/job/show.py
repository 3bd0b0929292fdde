"""From decoded pixels to what the model is shown and what the row records of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from vidpipe.engine.interface import Image, Video
from vidpipe.errors import MediaError
from vidpipe.manifest.row import Medium
from vidpipe.models.clock import clock_of
from vidpipe.models.family import Family, ImageRules, frames_to_add
from vidpipe.plan.subtitles import texts_behind
from vidpipe.recipe.schema import Sampling
from vidpipe.record.row import FramesRecord, ImageRecord
from vidpipe.video.decode import Frames
from vidpipe.video.draw import ROBOTO, draw_corner_texts
from vidpipe.video.picture_video import PictureVideo
from vidpipe.video.subtitles import Cue
from vidpipe.video.timeline import Timeline


@dataclass(frozen=True)
class ShownVideo:
    """A video, ready for the engine."""

    name: str
    medium: Video
    record: FramesRecord
    vision_tokens: int
    missing: int
    """Frames that the file lacks, and asked ones that do not decode."""
    notes: list[str]


@dataclass(frozen=True)
class ShownImage:
    """A still image, ready for the engine."""

    medium: Image
    record: ImageRecord
    vision_tokens: int


def show_image(pixels: npt.NDArray[np.uint8], rules: ImageRules, processor: Mapping[str, Any]) -> ShownImage:
    """Show `pixels`, [height, width, 3] RGB, under the settings of the checkpoint's image processor."""
    height, width = pixels.shape[:2]
    layout = rules.layout(width, height, processor)
    medium = Image(pixels, rules.slot_word, rules.vision_word)
    return ShownImage(medium, ImageRecord(list(layout.size_wh), _sha(pixels)), layout.vision_tokens)


def show_video(
    times: Timeline | PictureVideo,
    decode: Callable[[list[int]], Frames],
    family: Family,
    sampling: Sampling,
    processor: Mapping[str, Any],
    named: Medium,
    timestamps_from: Literal["clip", "video"],
    on_partial: Literal["run", "fail"],
    cues: Sequence[Cue] = (),
    recorded: Sequence[int] | None = None,
) -> ShownVideo:
    """Choose, decode and time the frames of one video.

    Args:
        times: Its frames.
        decode: Numbers of frames to the frames.
        family: Whose rules hold.
        sampling: Complete.
        processor: The settings that frames go by.
        named: What the manifest says of it.
        timestamps_from: Zero of the times that the model is told.
        on_partial: What becomes of a video that lacks frames.
        cues: Subtitles to stand between the frames, in seconds from the video's first frame.
        recorded: Numbers of frames that a row of an earlier run records, to be shown again; None: the family chooses.

    Raises:
        MediaError: it cannot be shown.
    """
    # Windows are seconds of playing time; the first frame of a file need not stand at 0.
    origin_s = float(times.times_s[0] - times.elapsed_s[0])
    first, end = 0, len(times)
    if named.start_s is not None or named.end_s is not None:
        first, end = times.window(_shift(named.start_s, origin_s), _shift(named.end_s, origin_s))
    fps = times.header_fps
    if recorded is None:
        recorded = [first + index for index in family.choose_frames(end - first, fps, sampling)]
    frames = decode(list(recorded))
    pixels, indices = frames.pixels, frames.indices
    missing = times.missing + frames.missing
    if missing and on_partial == "fail":
        raise MediaError("corrupt", f"{named.name}: {missing} frames are missing, and media.on_partial is fail.")
    repeats = frames_to_add(family, len(indices))
    if repeats:  # the family asked for frames that it takes; damage must not change that
        pixels = np.concatenate([pixels, np.repeat(pixels[-1:], repeats, axis=0)])
        indices = np.concatenate([indices, np.repeat(indices[-1:], repeats)])
    from_clip = timestamps_from == "clip"
    elapsed_s, zero_s = times.elapsed_s[indices].tolist(), (named.start_s or 0.0) if from_clip else 0.0
    clock = clock_of(
        indices.tolist(),
        elapsed_s,
        first_index=first if from_clip else 0,
        frames=end - first if from_clip else len(times),
        fps=fps,
        zero_s=zero_s,
        time_base=sampling.time_base,
    )
    height, width = pixels.shape[1:3]
    layout = family.layout(len(indices), width, height, sampling, processor)
    sha = _sha(pixels)  # of what the file has, not of what is drawn on it
    if family.times_in == "pixels":
        draw_corner_texts(pixels, family.time_texts(clock.times_s, sampling), processor.get("font", ROBOTO))
    record = FramesRecord(
        count=len(indices),
        indices=indices.tolist(),
        times_s=times.times_s[indices].tolist(),
        size_wh=list(layout.size_wh),
        sha=sha,
    )
    notes = list(frames.notes)
    between: tuple[str, ...] = ()
    if cues:
        end_s = float(times.elapsed_s[-1]) + (1 / fps if fps > 0 else 0.0)
        between, stand = texts_behind(cues, elapsed_s, layout.grid_thw[0], zero_s=zero_s, end_s=end_s)
        notes.append(f"subtitles: {stand} of {len(cues)} cues stand between the frames")
    medium = Video(
        pixels,
        family.engine_metadata(clock, sampling),
        family.processor_kwargs(sampling, processor),
        family.slot_word,
        family.vision_word,
        between,
    )
    return ShownVideo(named.name, medium, record, layout.vision_tokens, missing, notes)


def _sha(pixels: npt.NDArray[np.uint8]) -> str:
    return hashlib.sha256(np.ascontiguousarray(pixels).data).hexdigest()


def _shift(seconds: float | None, by_s: float) -> float | None:
    return None if seconds is None else seconds + by_s
