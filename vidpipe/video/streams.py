"""Choose the stream that is the video: not the cover, the thumbnails or the proxy."""

from __future__ import annotations

from typing import Any

from av.stream import Disposition

from vidpipe.errors import MediaError

_NEVER_THE_VIDEO = (
    Disposition.attached_pic | Disposition.timed_thumbnails | Disposition.still_image | Disposition.dependent
)


def choose_stream(container: Any, name: str) -> Any:
    """Return PyAV's stream object of the video in `container`; `name` stands in messages.

    Rule: pictures that accompany a file never count; of the rest a stream that
    the file marks as default goes before the others, then the larger picture,
    then the lower index. MediaError `no_video_stream` or `unsupported_codec`.
    """
    candidates = [
        s for s in container.streams if s.type == "video" and not Disposition(s.disposition) & _NEVER_THE_VIDEO
    ]
    if not candidates:
        found = ", ".join(f"{s.index}: {s.type}" for s in container.streams) or "none"
        raise MediaError("no_video_stream", f"{name}: has no video stream (streams found: {found})")
    stream = min(candidates, key=_rank)
    if stream.codec_context is None:
        raise MediaError(
            "unsupported_codec",
            f"{name}: no decoder for the codec of stream {stream.index}; convert the file, for example"
            " `ffmpeg -i IN -c:v libx264 OUT.mp4` with an FFmpeg that reads it",
        )
    return stream


def _rank(stream: Any) -> tuple[bool, int, int]:
    context = stream.codec_context
    area = context.width * context.height if context is not None else 0
    return not Disposition(stream.disposition) & Disposition.default, -area, stream.index
