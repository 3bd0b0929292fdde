"""What is in a video file, as far as can be told without decoding it all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vidpipe.errors import MediaError
from vidpipe.video.container import PathLike, display_name, open_media
from vidpipe.video.orientation import orientation_of_frame
from vidpipe.video.packets import StreamPackets, read_packets
from vidpipe.video.source import local_path
from vidpipe.video.streams import choose_stream
from vidpipe.video.timeline import Timeline, build_timeline
from vidpipe.video.walk import Walker

_HDR = {16: "PQ (SMPTE ST 2084)", 18: "HLG (ARIB STD-B67)"}  # transfer characteristics of ITU-T H.273
_PROGRESSIVE = 1  # AV_FIELD_PROGRESSIVE; above it are the interlaced orders


@dataclass(frozen=True)
class Probe:
    """Facts about one video file; times and sizes as it is shown."""

    stream_index: int
    codec: str
    display_wh: tuple[int, int]
    """Width and height after rotation, in stored pixels: pixel aspect is noted, not applied."""
    frames: int
    frames_known: bool
    """False when some frames are cut off or damaged: then `frames` counts those that are there."""
    duration_s: float
    average_fps: float
    header_fps: float
    variable_rate: bool
    rotation_deg: int
    """Clockwise: 0, 90, 180 or 270."""
    mirrored: bool
    notes: tuple[str, ...]
    timeline: Timeline


def probe(path: PathLike) -> Probe:
    """Read the facts about the video in `path`; MediaError when it cannot be shown to a model.

    Costs one read of the file (no count in a header is believed) and the decoding of
    one picture, for its orientation and to know that the decoder works.
    """
    name = display_name(path)
    with open_media(path) as container:
        stream = choose_stream(container, name)
        timeline = build_timeline(path, stream, read_packets(container, stream))
    with open_media(path) as container:
        stream = container.streams[timeline.stream_index]
        picture = _first_picture(container, stream)
        if picture is None:
            raise MediaError("corrupt", f"{name}: the decoder {stream.codec_context.name} gives no picture")
        orientation, rest_deg = orientation_of_frame(picture)
        context = stream.codec_context
        notes = list(timeline.notes)
        if abs(rest_deg) > 1:
            notes.append(f"rotation: {rest_deg:.0f} degrees beyond a quarter turn are not applied")
        aspect = context.sample_aspect_ratio
        if aspect and aspect != 1:
            notes.append(f"pixel aspect: {aspect.numerator}:{aspect.denominator} is stated; frames keep stored pixels")
        if context.color_trc in _HDR:
            notes.append(f"hdr: {_HDR[context.color_trc]}; colours are not tone-mapped")
        if context.field_order > _PROGRESSIVE:
            notes.append("interlaced: the two fields of a frame stay woven")
        return Probe(
            stream_index=stream.index,
            codec=context.codec.canonical_name,
            display_wh=orientation.display_wh((context.width, context.height)),
            frames=len(timeline),
            frames_known=timeline.missing == 0,
            duration_s=timeline.duration_s,
            average_fps=timeline.average_fps,
            header_fps=timeline.header_fps,
            variable_rate=timeline.variable_rate,
            rotation_deg=orientation.rotation_deg,
            mirrored=orientation.mirrored,
            notes=tuple(notes),
            timeline=timeline,
        )


def probe_name(name: str) -> Probe:
    """Return `probe` of the file that `name`, a path or a `file://` URI, means."""
    return probe(local_path(name))


def _first_picture(container: Any, stream: Any) -> Any | None:
    walker = Walker(stream)
    for number, packet in enumerate(StreamPackets(container, stream)):
        for picture in walker.feed(number, packet):
            return picture.frame
    for picture in walker.finish():
        return picture.frame
    return None
