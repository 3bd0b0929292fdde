"""From a planned clip to frames, times and sizes: the part of a run that reads media files."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from vidpipe.engine.interface import Image, Medium, Video
from vidpipe.job.show import ShownImage, ShownVideo, show_image, show_video
from vidpipe.manifest.row import Medium as Named
from vidpipe.manifest.row import Row
from vidpipe.models.family import Family, VideoLayout
from vidpipe.models.llava_onevision2_codec import most_tokens
from vidpipe.models.prompt import Span, Told, pruned
from vidpipe.plan.clips import Clip
from vidpipe.plan.cost import UNKNOWN_COST, clip_cost
from vidpipe.plan.graph_packing import EncoderItem
from vidpipe.plan.graph_proposal import encoder_item
from vidpipe.plan.subtitles import sentences
from vidpipe.pruning.counts import account, positions_taken
from vidpipe.recipe.resolve import fingerprint
from vidpipe.recipe.schema import Pruning, Recipe, Sampling
from vidpipe.record.row import FramesRecord, ImageRecord, MediaRecord
from vidpipe.video.cache import cached_timeline, default_index
from vidpipe.video.decode import decode_frames
from vidpipe.video.fetch import Sources
from vidpipe.video.header_cache import cached_header
from vidpipe.video.headers import Header
from vidpipe.video.media_path import media_path
from vidpipe.video.picture_video import PictureVideo, picture_video, pictures_in
from vidpipe.video.pictures import picture_size, read_picture
from vidpipe.video.subtitles import Cue, read_cues

BYTES_PER_PIXEL = 3 * 4
"""Of prepared frames: three colours as float32, which is the most that a processor makes of them."""


@dataclass(frozen=True)
class SeenClip:
    """What the rows of a clip record about it; small, kept while its requests run."""

    videos: tuple[FramesRecord, ...]
    images: tuple[ImageRecord, ...]
    media: MediaRecord | None
    """How decoding went, all media together; None without media."""
    vision_tokens: int
    """What the family's rules give for all media, before pruning."""
    decode_s: float
    decode_core_s: float
    """Processor time of the same: what others did on the machine meanwhile is not in it."""
    frame_bytes: int
    """Bytes of the decoded frames and images."""


@dataclass(frozen=True)
class PreparedClip:
    """A clip, decoded once for all its rows; its pixels go when the last of them is submitted."""

    media: tuple[Medium, ...]
    """In the order of the row's media."""
    identities: tuple[str, ...]
    """See `Preparer.prepare`."""
    seen: SeenClip
    file_times_s: tuple[float, ...] = ()
    """Of a clip that the engine itself decodes: presentation time of each frame of its file."""


@dataclass(frozen=True)
class Outlook:
    """What headers promise of a clip."""

    cost: int
    """See `plan.cost`."""
    duration_s: float
    """Of the whole files; 0 if the headers do not say."""
    frames: int
    """Frames and images that the model will see; 0 if a header does not say."""
    vision_tokens: int
    """What the family's rules give for them, before pruning."""
    kept_tokens: int
    """What of that stands in the prompt."""
    positions: int
    """Positions that the clip alone takes, its texts left out; what is pruned takes them too."""
    media_bytes: int
    """Upper bound of what the clip takes, decoded and prepared."""
    encoder: tuple[EncoderItem, ...] = ()
    """Its videos as the vision encoder sees them."""
    shown_s: float = 0.0
    """Playing time within the windows."""
    decoded_pixels: int = 0
    """Of the frames and images before they are resized."""
    told: tuple[Told, ...] = ()
    """What stands in the prompt for its media, if that was asked for and the headers say."""


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
    """Settings that the family's frames go by."""
    media_root: Path
    allow_outside_root: bool
    image_processor: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the checkpoint's image processor."""

    def look(self, clip: Clip, *, tell: bool = False) -> Outlook:
        """What the clip will cost, from the headers of its files alone.

        Args:
            clip: The clip.
            tell: Whether to say what stands in the prompt.

        Raises:
            MediaError: a file cannot be opened.
        """
        sampling = clip.first.settings.sampling
        told_from = clip.first.row.timestamps_from if tell else None
        outlooks = [self._look(medium, sampling, told_from) for medium in clip.first.row.media]
        unknown = any(outlook.frames == 0 for outlook in outlooks)
        return Outlook(
            cost=max(1, sum(outlook.cost for outlook in outlooks)),  # rows of text only are work too
            duration_s=sum(outlook.duration_s for outlook in outlooks),
            frames=0 if unknown else sum(outlook.frames for outlook in outlooks),
            vision_tokens=sum(outlook.vision_tokens for outlook in outlooks),
            kept_tokens=sum(outlook.kept_tokens for outlook in outlooks),
            positions=sum(outlook.positions for outlook in outlooks),
            media_bytes=sum(outlook.media_bytes for outlook in outlooks),
            encoder=tuple(item for outlook in outlooks for item in outlook.encoder),
            shown_s=sum(outlook.shown_s for outlook in outlooks),
            decoded_pixels=sum(outlook.decoded_pixels for outlook in outlooks),
            told=tuple(told for outlook in outlooks for told in outlook.told),
        )

    def read(self, clip: Clip, recorded: Sequence[Sequence[int]] | None = None) -> PreparedClip:
        """Decode the frames and images that the model sees.

        Args:
            clip: The clip.
            recorded: For each of its videos the numbers of the frames that it was shown with in an earlier run, to be
                shown again; None: the family chooses.

        Raises:
            MediaError: the clip cannot be shown; its rows get an error record.
        """
        started, core_started = time.perf_counter(), time.process_time()
        row, sampling = clip.first.row, clip.first.settings.sampling
        again = None if recorded is None else iter(recorded)
        shown = [self._show(medium, clip, sampling, again) for medium in row.media]
        videos = [item for item in shown if isinstance(item, ShownVideo)]
        missing = sum(video.missing for video in videos)
        several = len(shown) > 1
        notes = [f"{v.name}: {note}" if several else note for v in videos for note in v.notes]
        seen = SeenClip(
            videos=tuple(video.record for video in videos),
            images=tuple(image.record for image in shown if isinstance(image, ShownImage)),
            media=MediaRecord("ok_partial" if missing else "ok", missing, notes) if shown else None,
            vision_tokens=sum(item.vision_tokens for item in shown),
            decode_s=time.perf_counter() - started,
            decode_core_s=time.process_time() - core_started,
            frame_bytes=sum(item.medium.pixels.nbytes for item in shown),
        )
        identities = tuple(_identity(item.medium, item.record.sha) for item in shown)
        return PreparedClip(tuple(item.medium for item in shown), identities, seen)

    def _look(self, medium: Named, sampling: Sampling, told_from: Literal["clip", "video"] | None) -> Outlook:
        if medium.kind == "image":
            with self.file(medium.name) as path:
                width, height = picture_size(path)
            rules = self.family.abilities.images
            assert rules is not None, "the plan refuses images otherwise"
            image = rules.layout(width, height, self.image_processor)
            pixels = image.size_wh[0] * image.size_wh[1]
            # Frames of a video are joined in pairs; a processor makes a pair of the one image, too.
            tokens = image.vision_tokens  # images are not pruned, and take no more positions than tokens
            media_bytes = 3 * width * height + 2 * BYTES_PER_PIXEL * pixels
            stands = (Told(rules.slot_word, (Span(rules.vision_word, tokens),)),)
            return Outlook(
                pixels, 0.0, 1, tokens, tokens, tokens, media_bytes, decoded_pixels=width * height, told=stands
            )
        header = self._header(medium)
        if sampling.video_backend == "codec":
            assert sampling.canvases is not None and sampling.max_pixels is not None
            pixels = sampling.canvases * sampling.max_pixels
            tokens = most_tokens(sampling, self.processor.get("patch_size", 14) * self.processor.get("merge_size", 2))
            media_bytes = BYTES_PER_PIXEL * pixels
            return Outlook(
                pixels, header.duration_s, sampling.canvases, tokens, tokens, tokens, media_bytes,
                shown_s=header.duration_s,
            )  # fmt: skip
        frames, first = header.frames, 0
        if header.fps and (medium.start_s is not None or medium.end_s is not None):
            end_s = min(medium.end_s or math.inf, frames / header.fps)
            frames = round((end_s - (medium.start_s or 0.0)) * header.fps)
            first = math.ceil((medium.start_s or 0.0) * header.fps)
        if frames <= 0 or header.width <= 0 or header.height <= 0:
            return Outlook(UNKNOWN_COST, header.duration_s, 0, 0, 0, 0, UNKNOWN_COST * BYTES_PER_PIXEL)
        indices = self.family.choose_frames(frames, header.fps, sampling)
        count = len(indices)
        layout = self.family.layout(count, header.width, header.height, sampling, self.processor)
        cost = clip_cost(count, *layout.size_wh)
        media_bytes = 3 * count * header.width * header.height + BYTES_PER_PIXEL * clip_cost(count + 1, *layout.size_wh)
        kept = kept_tokens(layout, self.recipe.pruning)
        steps, *sides = layout.grid_thw
        positions = positions_taken(0, 0, steps, *(side // layout.merge for side in sides))
        encoder = (encoder_item(layout.grid_thw, layout.merge),)
        told: tuple[Told, ...] = ()
        if told_from is not None and header.fps > 0:
            begin = first if told_from == "video" else 0
            spans = self.family.prompt([(begin + index) / header.fps for index in indices], layout, sampling)
            if self.recipe.pruning is not None:
                spans = pruned(spans, self.family.vision_word, kept)
            told = (Told(self.family.slot_word, tuple(spans)),)
        return Outlook(
            cost, header.duration_s, count, layout.vision_tokens, kept, positions, media_bytes, encoder,
            frames / header.fps if header.fps > 0 else 0.0, count * header.width * header.height, told,
        )  # fmt: skip

    def _header(self, medium: Named) -> Header:
        if medium.kind == "video":
            with self.file(medium.name) as path:
                return cached_header(path)
        video = self._pictures(medium)
        width, height = picture_size(video.paths[0])
        return Header(len(video), video.header_fps, width, height, len(video) / video.header_fps)

    def _show(
        self, medium: Named, clip: Clip, sampling: Sampling, recorded: Iterator[Sequence[int]] | None
    ) -> ShownVideo | ShownImage:
        if medium.kind == "image":
            rules = self.family.abilities.images
            assert rules is not None, "the plan refuses images otherwise"
            with self.file(medium.name) as path:
                return show_image(read_picture(path), rules, self.image_processor)
        row = clip.first.row
        on_partial, cues = self.recipe.media.on_partial, self._cues(row)
        show = (self.family, sampling, self.processor, medium, row.timestamps_from, on_partial, cues)
        indices = None if recorded is None else next(recorded)
        if medium.kind == "frames":
            pictures = self._pictures(medium)
            return show_video(pictures, pictures.decode, *show, indices)
        with self.file(medium.name) as path:
            timeline = cached_timeline(path)
            return show_video(timeline, lambda asked: decode_frames(path, asked, timeline=timeline), *show, indices)

    def _cues(self, row: Row) -> list[Cue]:
        cues: list[Cue] = []
        for name in row.subtitles:
            with self.file(name) as path:
                cues += sentences(read_cues(path))
        by_s = -row.subtitle_offset_s
        moved = [Cue(cue.start_s + by_s, cue.end_s + by_s, cue.text) for cue in cues]
        return sorted(moved, key=lambda cue: (cue.start_s, cue.end_s))

    def _pictures(self, medium: Named) -> PictureVideo:
        assert medium.fps is not None, "the manifest's reader sees to it"
        paths = [self._local(name) for name in medium.pictures] or pictures_in(self._local(medium.name))
        if not self.allow_outside_root and not medium.pictures:  # a folder may hold links
            paths = [self._local(path) for path in paths]
        return picture_video(paths, medium.fps, medium.first_number)

    def file(self, name: str) -> AbstractContextManager[str]:
        """The file that the manifest calls `name`, or a copy of a remote one, which stays until the context's end.

        Raises:
            MediaError: there is none, or it may not be read.
        """
        media = self.recipe.media
        folder = default_index().parent / "media"
        return Sources(frozenset(media.schemes), folder, media.cache_bytes).local(self.path(name))

    def path(self, name: str) -> str:
        """Where the file or folder that the manifest calls `name` should be; a URL that the recipe allows as it is.

        Raises:
            MediaError: it may not be read.
        """
        schemes = self.recipe.media.schemes
        return media_path(name, self.media_root, allow_outside=self.allow_outside_root, schemes=schemes)

    def _local(self, name: str) -> str:
        return media_path(name, self.media_root, allow_outside=self.allow_outside_root)


def _identity(medium: Video | Image, sha: str) -> str:
    if isinstance(medium, Image):
        return fingerprint(["image", sha, medium.pixels.shape])
    return fingerprint([sha, medium.pixels.shape, dict(medium.metadata), dict(medium.processor_kwargs)])
