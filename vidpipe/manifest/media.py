"""The media of a row: columns `video`, `frames`, `images` and their windows. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from vidpipe.errors import RowError
from vidpipe.manifest.cells import clean_text, number, texts, whole_number
from vidpipe.manifest.row import Medium

MEDIA_COLUMNS = frozenset({"video", "frames", "images", "messages"})
"""One of them must be there; `messages` alone for a chat of text."""
Window = tuple[float | None, float | None]


def media_of(values: Mapping[str, Any]) -> tuple[Medium, ...]:
    """The media that a record names: images, then videos.

    An empty list (`"video": []`) says that the row has none on purpose.

    Raises:
        RowError: `missing_field`, `bad_value` or `bad_window`.
    """
    images = tuple(Medium("image", name) for name in texts(values, "images"))
    videos = _windowed(values, _videos(values))
    named = [name for name in ("video", "frames", "images") if values.get(name) is not None]
    if not named and values.get("messages") is None:
        raise RowError(
            "missing_field",
            "no video, frames or images; give a path or a file:// URI, or [] as video for a row of text only.",
        )
    return images + videos


def _videos(values: Mapping[str, Any]) -> tuple[Medium, ...]:
    video, frames = values.get("video"), values.get("frames")
    fps, first = number(values, "frames_fps"), whole_number(values, "frames_start_index")
    if fps is not None and fps <= 0:
        raise RowError("bad_value", f"frames_fps must be above 0, found {values['frames_fps']!r}.")
    if video == "":
        raise RowError("missing_field", "video is empty; give a path or a file:// URI.")
    if frames is None:
        kind, names = ("video" if fps is None else "frames"), texts(values, "video")
        return tuple(Medium(kind, name, fps=fps, first_number=first) for name in names)  # type: ignore[arg-type]
    if video is not None:
        raise RowError("bad_value", "video and frames exclude each other; keep one.")
    if fps is None:
        raise RowError("bad_value", "frames have no times without frames_fps; give the pictures' rate.")
    pictures = texts(values, "frames")
    if not pictures:
        return ()
    if isinstance(frames, str):
        return (Medium("frames", clean_text("frames", frames), fps=fps, first_number=first),)
    return (Medium("frames", pictures[0], pictures=pictures, fps=fps, first_number=first),)


def _windowed(values: Mapping[str, Any], videos: tuple[Medium, ...]) -> tuple[Medium, ...]:
    """The videos with their windows: `clips` names one each, `clip_start` and `clip_end` the first one's."""
    first, each = first_window(values), values.get("clips")
    if each is None:
        if first == (None, None):
            return videos
        if not videos:
            raise RowError("bad_window", "clip_start and clip_end need a video.")
        return (replace(videos[0], start_s=first[0], end_s=first[1]), *videos[1:])
    if first != (None, None):
        raise RowError("bad_window", "clips and clip_start, clip_end exclude each other; keep one.")
    if not isinstance(each, list) or len(each) != len(videos):
        raise RowError("bad_window", f"clips must be a list of one window a video ({len(videos)}), found {each!r}.")
    windows = [(None, None) if window is None else _each_window(window) for window in each]
    return tuple(replace(v, start_s=start, end_s=end) for v, (start, end) in zip(videos, windows, strict=True))


def _each_window(window: Any) -> Window:
    if not isinstance(window, dict) or window.keys() - {"start", "end"}:
        raise RowError("bad_window", f"an entry of clips must be {{start, end}} or null, found {window!r}.")
    return _window(window, "start", "end")


def first_window(values: Mapping[str, Any]) -> Window:
    """`clip_start` and `clip_end`, which published files call `start` and `end`."""
    names = []
    for name in ("start", "end"):
        if values.get(name) is not None and values.get(f"clip_{name}") is not None:
            raise RowError("bad_window", f"{name} and clip_{name} mean the same; keep one.")
        names.append(f"clip_{name}" if values.get(name) is None else name)
    return _window(values, *names)


def _window(values: Mapping[str, Any], start: str, end: str) -> Window:
    start_s, end_s = number(values, start, "bad_window"), number(values, end, "bad_window")
    if start_s is not None and start_s < 0:
        raise RowError("bad_window", f"{start} {start_s:g} is negative.")
    if end_s is not None and end_s <= (start_s or 0.0):
        raise RowError("bad_window", f"{end} {end_s:g} is not after {start} {start_s or 0.0:g}.")
    return start_s, end_s
