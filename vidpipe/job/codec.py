"""Clips whose codec stream the checkpoint's own code reads: which it can take, and what rows record of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from vidpipe.engine.interface import Canvases, CodecVideo
from vidpipe.engine.vllm_codec import missing_programs
from vidpipe.errors import CapabilityError, MediaError
from vidpipe.job.prepare import ClipReader, PreparedClip, SeenClip
from vidpipe.models.clock import clock_of
from vidpipe.models.llava_onevision2_codec import CODECS, as_frames, processor_kwargs
from vidpipe.plan.clips import Clip
from vidpipe.recipe.resolve import fingerprint
from vidpipe.recipe.schema import Recipe
from vidpipe.record.row import FramesRecord, MediaRecord
from vidpipe.video.probe import Probe, probe

MERGE = 2


def for_codec(recipe: Recipe) -> Recipe:
    """`recipe` with what the engine needs to open files itself, if it asks for the codec.

    Raises:
        CapabilityError: the codec cannot be had.
    """
    if recipe.sampling.video_backend != "codec":
        return recipe
    if recipe.engine.name != "vllm":
        raise CapabilityError(
            f"sampling.video_backend: engine {recipe.engine.name} has no codec; set engine.name: vllm."
        )
    if recipe.feed.prepare == "engine":
        raise CapabilityError(
            "feed.prepare: canvases are made where clips are prepared; beside the engine a hanging file would hang the "
            "run. Leave it at auto."
        )
    if recipe.engine.encoder_graphs == "on":
        raise CapabilityError(
            "engine.encoder_graphs: budgets are made for frames, and canvases are not foreseen. Leave it at auto (off "
            "under sampling.video_backend: codec)."
        )
    # vidpipe has held the path against media_root before the engine gets it.
    args = {"allowed_local_media_path": "/", **recipe.engine.args}
    engine = recipe.engine.model_copy(update={"args": args, "encoder_graphs": "off"})
    return recipe.model_copy(update={"engine": engine})


def require_programs(recipe: Recipe) -> None:
    """Refuse a run that asks for the codec where what makes canvases is not installed.

    Raises:
        CapabilityError: naming what is missing.
    """
    missing = missing_programs() if recipe.sampling.video_backend == "codec" else []
    if missing:
        raise CapabilityError(
            f"sampling.video_backend: the checkpoint's code makes canvases with {', '.join(missing)}, which is not on "
            "PATH. Type: pip install --no-deps codec-video-prep (without its pins on numpy and opencv, which vLLM's "
            "contradict), and install ffmpeg."
        )


@contextmanager
def codec_clip(reader: ClipReader, clip: Clip) -> Iterator[PreparedClip]:
    """The clip as the codec takes it; its file is there until the end of the context.

    Raises:
        MediaError: the codec cannot take it.
    """
    started, core_started = time.perf_counter(), time.process_time()
    (medium,) = clip.first.row.media
    if medium.kind != "video":
        raise MediaError("unsupported_codec", f"{medium}: pictures have no codec stream.")
    if medium.start_s is not None or medium.end_s is not None:
        raise MediaError("bad_window", f"{medium}: the checkpoint's code reads whole files, not a part of one.")
    with reader.file(medium.name) as name:
        path = Path(name).resolve()
        facts = probe(path)
        _refuse(str(medium), facts)
        timeline, sampling = facts.timeline, clip.first.settings.sampling
        clock = clock_of(
            range(len(timeline)),
            timeline.elapsed_s.tolist(),
            first_index=0,
            frames=len(timeline),
            fps=timeline.header_fps,
            zero_s=0.0,
            time_base=sampling.time_base,
        )
        video = CodecVideo(
            path=str(path),
            times_s=np.asarray(clock.times_s),
            merge=reader.processor.get("merge_size", MERGE),
            processor_kwargs=processor_kwargs(sampling),
            slot_word=reader.family.slot_word,
            vision_word=reader.family.vision_word,
        )
        stat = path.stat()
        identity = fingerprint(["codec", str(path), stat.st_size, stat.st_mtime_ns, dict(video.processor_kwargs)])
        decode_s = time.perf_counter() - started
        core_s = time.process_time() - core_started
        unseen = SeenClip((), (), MediaRecord("ok", 0, list(facts.notes)), 0, decode_s, core_s, 0)
        yield PreparedClip((video,), (identity,), unseen, tuple(timeline.times_s.tolist()))


def _refuse(name: str, facts: Probe) -> None:
    """Refuse what the program would show otherwise than it is, or number otherwise than the file's frames."""
    if facts.codec not in CODECS:
        raise MediaError(
            "unsupported_codec", f"{name}: the codec is {facts.codec}; canvases are made of {', '.join(CODECS)}."
        )
    if facts.rotation_deg or facts.mirrored:
        raise MediaError("unsupported_codec", f"{name}: stored turned or mirrored, and canvases would show it so.")
    if not facts.frames_known:
        raise MediaError("truncated", f"{name}: frames are missing, and canvases would show what is made up for them.")
    hidden = len(facts.timeline.packets) - len(facts.timeline)
    if hidden:
        raise MediaError(
            "unsupported_codec",
            f"{name}: the file hides {hidden} of its frames (an edit list), and canvases would count them.",
        )


def clip_as_frames(clip: Clip, error: MediaError) -> Clip:
    """The clip to show in place of one that the codec cannot take.

    Raises:
        MediaError: the recipe does not say so.
    """
    if clip.first.settings.sampling.codec_fallback == "fail":
        raise MediaError(error.kind, f"{error} To show such clips as frames, set sampling.codec_fallback: frames.")
    rows = (
        replace(row, settings=replace(row.settings, sampling=as_frames(row.settings.sampling))) for row in clip.rows
    )
    return Clip(tuple(rows))


def seen_as_frames(seen: SeenClip, error: MediaError) -> SeenClip:
    """What rows record of a clip that is shown as frames: that, and why, too."""
    assert seen.media is not None
    note = f"shown as frames, not canvases: {error}"
    return replace(seen, media=replace(seen.media, notes=[*seen.media.notes, note]))


def seen_on_canvases(seen: SeenClip, canvases: Canvases, times_s: tuple[float, ...]) -> SeenClip:
    """What rows record of a clip, with its canvases: the file's frames in the order of the prompt.

    Args:
        seen: As far as it was known before they were made.
        canvases: What was made.
        times_s: Presentation time of each frame of the file.
    """
    assert seen.media is not None
    frames = FramesRecord(
        count=len(canvases.source_frames),
        indices=list(canvases.source_frames),
        times_s=[times_s[frame] for frame in canvases.source_frames],
        size_wh=list(canvases.size_wh),
        sha=canvases.sha,
    )
    note = f"codec: patches of {len(set(canvases.source_frames))} frames on {canvases.count} canvases"
    media = replace(seen.media, notes=[*seen.media.notes, note])
    return replace(seen, videos=(frames,), media=media, vision_tokens=canvases.vision_tokens)
