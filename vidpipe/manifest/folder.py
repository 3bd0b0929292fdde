"""A folder of clips, or one clip, as a manifest: a row a file, in name order."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from vidpipe.manifest.row import Fault, Record

VIDEO_SUFFIXES = frozenset(
    f".{name}"
    for name in (
        "3gp", "asf", "avi", "flv", "gif", "h264", "h265", "hevc", "m2ts", "m4v", "mkv", "mov", "mp4", "mpeg",
        "mpg", "mts", "mxf", "ogv", "ts", "vob", "webm", "wmv",
    )
)  # fmt: skip
"""Endings of the files that a folder manifest lists."""
PICTURE_SUFFIXES = frozenset((".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm"))
"""Endings of pictures in a folder that is a video."""
PICTURES = (
    " It holds pictures. Those of one folder make a video where their rate is known: write a manifest with a row such "
    'as {"id": "a", "video": "FOLDER", "frames_fps": 2} (docs/manifest.md).'
)


def read_folder(folder: Path) -> Iterator[Record | Fault]:
    """One record (`id`, `video`) for each video file below `folder`; ids are relative paths."""
    files = [Path(base, name) for base, _, names in os.walk(folder) for name in names]
    found = sorted(path.relative_to(folder) for path in files if path.suffix.lower() in VIDEO_SUFFIXES)
    if not found:
        pictures = PICTURES if any(path.suffix.lower() in PICTURE_SUFFIXES for path in files) else ""
        yield Fault("not_found", f"the folder holds no video file ({', '.join(sorted(VIDEO_SUFFIXES))}).{pictures}")
    for number, path in enumerate(found, start=1):
        yield Record(number, {"id": _id_of(path), "video": path_text(folder / path)})


def read_single(path: Path) -> Iterator[Record]:
    """One record for one clip."""
    yield Record(1, {"id": _id_of(Path(path.name)), "video": path_text(path)})


def path_text(path: Path) -> str:
    """`path` as manifests write it: the path itself, or a file URI when its bytes are not UTF-8."""
    text = str(path)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "file://" + quote(os.fsencode(path.absolute()))
    return text


def _id_of(path: Path) -> str:
    text = path.as_posix()
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return quote(os.fsencode(text))
    return text
