"""The media of recorded rows once more: small pictures of the very frames, and what the prompt said of them.

Works in a worker process, as a run does: a file that crashes its decoder costs its pictures.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image as Picture

from vidpipe.engine.interface import Image, Video
from vidpipe.errors import MediaError
from vidpipe.job.prepare import ClipReader
from vidpipe.job.preview import pruned_cells
from vidpipe.models.prompt import Span, Told, pruned, with_texts_behind
from vidpipe.plan.clips import Clip
from vidpipe.record.row import FramesRecord, ImageRecord
from vidpipe.report.sheet import Tile, thumbnail

LONG_SIDE = 160
"""Of a small picture, in pixels."""
QUALITY = 62
MOST_PICTURES = 64
"""Of one video; more frames are shown by an even selection of them."""


@dataclass(frozen=True)
class MediumAgain:
    """A video or image as the model saw it."""

    name: str
    """As the manifest calls it."""
    source_wh: tuple[int, int]
    size_wh: tuple[int, int]
    """Before the model, after its resize rule."""
    told: Told
    indices: tuple[int, ...]
    """Of the frames in the file; empty for an image."""
    times_s: tuple[float, ...]
    """Their presentation times in the file."""
    time_texts: tuple[str, ...]
    """What the model reads as times, one for each frame or each pair of frames."""
    pictures: tuple[tuple[int, bytes], ...]
    """Place among the frames, and a WebP."""
    same: bool
    """Whether the decoded bytes have the hash that the row records."""
    shaded: bool
    """Whether cells are shaded that pruning drops, judged by pixels."""


def show_again(
    reader: ClipReader, clip: Clip, videos: Sequence[FramesRecord], images: Sequence[ImageRecord]
) -> list[MediumAgain]:
    """Decode what the rows of a clip record.

    Args:
        reader: Of the run.
        clip: Its rows.
        videos: What its rows record of their videos, in order.
        images: And of their images.

    Raises:
        MediaError: a file is gone or cannot be shown.
    """
    if clip.first.settings.sampling.video_backend == "codec":
        raise MediaError("unsupported_codec", "canvases are made by the checkpoint's own code, only in a run")
    prepared = reader.read(clip, [video.indices for video in videos])
    seen_videos, seen_images = iter(prepared.seen.videos), iter(prepared.seen.images)
    recorded_videos, recorded_images = iter(videos), iter(images)
    found = []
    for named, medium in zip(clip.first.row.media, prepared.media, strict=True):
        if isinstance(medium, Image):
            same = next(seen_images).sha == next(recorded_images).sha
            found.append(_image(reader, named.name, medium, same))
            continue
        assert isinstance(medium, Video)
        seen, before = next(seen_videos), next(recorded_videos)
        found.append(_video(reader, clip, named.name, medium, seen, seen.sha == before.sha))
    return found


def _image(reader: ClipReader, name: str, medium: Image, same: bool) -> MediumAgain:
    rules = reader.family.abilities.images
    assert rules is not None, "the plan refuses images otherwise"
    height, width = medium.pixels.shape[:2]
    layout = rules.layout(width, height, reader.image_processor)
    told = Told(medium.slot_word, (Span(medium.vision_word, layout.vision_tokens),))
    picture = _small(medium.pixels, None)
    return MediumAgain(name, (width, height), layout.size_wh, told, (), (), (), ((0, picture),), same, shaded=False)


def _video(reader: ClipReader, clip: Clip, name: str, medium: Video, seen: FramesRecord, same: bool) -> MediumAgain:
    family, sampling, pruning = reader.family, clip.first.settings.sampling, reader.recipe.pruning
    told_s = [index / medium.metadata["fps"] for index in medium.metadata["frames_indices"]]
    height, width = medium.pixels.shape[1:3]
    layout = family.layout(len(told_s), width, height, sampling, reader.processor)
    spans = family.prompt(told_s, layout, sampling)
    kept_cells, tokens = pruned_cells(medium.pixels, layout, pruning)
    if pruning is not None:
        spans = pruned(spans, family.vision_word, tokens.kept)
    if any(medium.texts_behind):
        spans = with_texts_behind(spans, family.vision_word, medium.texts_behind)
    places = _places(seen.count)
    step_of = np.arange(seen.count) * layout.grid_thw[0] // max(1, seen.count)
    pictures = tuple(
        (place, _small(medium.pixels[place], None if kept_cells is None else kept_cells[step_of[place]]))
        for place in places
    )
    return MediumAgain(
        name,
        (width, height),
        layout.size_wh,
        Told(medium.slot_word, tuple(spans)),
        tuple(seen.indices),
        tuple(seen.times_s),
        tuple(family.time_texts(told_s, sampling)),
        pictures,
        same,
        shaded=kept_cells is not None,
    )


def _places(count: int) -> list[int]:
    """Places of at most `MOST_PICTURES` among so many, from the first to the last."""
    if count <= MOST_PICTURES:
        return list(range(count))
    return [round(n * (count - 1) / (MOST_PICTURES - 1)) for n in range(MOST_PICTURES)]


def _small(pixels: npt.NDArray[np.uint8], kept: npt.NDArray[np.bool_] | None) -> bytes:
    height, width = pixels.shape[:2]
    scale = min(1.0, LONG_SIDE / max(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    picture: Picture.Image = thumbnail(Tile(pixels, (), kept), size)
    file = io.BytesIO()
    picture.save(file, "WEBP", quality=QUALITY, method=2)
    return file.getvalue()
