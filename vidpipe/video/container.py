"""Open one media file with FFmpeg, and nothing else.

FFmpeg takes a name apart like a URL and follows playlists to other files and
hosts. Here a name is only ever a local file (any bytes), the single protocol is
`file`, and formats that open further files are refused before FFmpeg sees them.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import av
from av.container.core import Flags

from vidpipe.errors import MediaError
from vidpipe.video.sniff import looks_like_media, playlist_kind

PathLike = str | bytes | os.PathLike[str] | os.PathLike[bytes]

# These open other files, hosts or devices, or run scripts.
_FORMATS_THAT_OPEN_MORE = frozenset(
    (
        *("hls", "applehttp", "concat", "concatf", "dash", "webm_dash_manifest", "imf", "image2", "vobsub"),
        *("sdp", "rtsp", "rtp", "sap", "lavfi", "avisynth", "vapoursynth", "dvdvideo", "tedcaptions"),
        *("libgme", "libmodplug", "libopenmpt"),
    )
)
# FFmpeg draws text files as pictures: a log is not a video.
_FORMATS_OF_TEXT_ART = frozenset(("tty", "bin", "xbin", "adf", "idf"))

# FFmpeg's error lines are listened to (see walk), and vidpipe says in its own words what they mean.
av.logging.set_level(av.logging.ERROR)
logging.getLogger("libav").addHandler(logging.NullHandler())
logging.getLogger("libav").propagate = False
# A second failure with the same words must be heard too (see walk).
av.logging.set_skip_repeated(False)


def display_name(path: PathLike) -> str:
    r"""Return `path` as printable text: bytes that are not UTF-8 become `\xNN`."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def check_file(path: PathLike) -> os.stat_result:
    """Return the file's status; MediaError unless it is a regular file with something in it."""
    name = display_name(path)
    try:
        status = os.stat(path)  # noqa: PTH116  (pathlib takes no bytes)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise MediaError("not_found", f"{name}: no such file; check `video` and `media_root`") from None
    except OSError as error:
        raise MediaError("not_openable", f"{name}: {error.strerror}") from None
    if not stat.S_ISREG(status.st_mode):
        what = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe or device"
        raise MediaError("not_a_file", f"{name}: is {what}, not a file; name a video file")
    if status.st_size == 0:
        raise MediaError("empty_file", f"{name}: the file has 0 bytes; fetch it again")
    return status


@contextmanager
def open_media(path: PathLike) -> Iterator[Any]:
    """Open `path` for demuxing; yields PyAV's InputContainer.

    Raises MediaError of kind `not_found`, `not_a_file`, `empty_file`, `protocol`,
    `not_media` or `not_openable`.
    """
    check_file(path)
    name = display_name(path)
    head = _read_head(path)
    if (playlist := playlist_kind(head)) is not None:
        raise MediaError(
            "protocol",
            f"{name}: is {playlist}; playlists open other files and are refused; name the video itself",
        )
    try:
        container = av.open(
            "file:" + os.fsdecode(path),
            mode="r",
            metadata_errors="replace",
            container_options={"protocol_whitelist": "file", "format_whitelist": _allowed_formats()},
        )
    except (av.error.FFmpegError, OSError, ValueError) as error:
        raise _open_error(name, head, error) from None
    try:
        if container.format.name.endswith("_pipe"):
            raise MediaError("not_media", f"{name}: is a still picture ({container.format.name}), not a video")
        if container.format.name == "avi":
            # AVI has no presentation times; those that FFmpeg makes up are wrong for reordered pictures.
            container.flags &= ~Flags.gen_pts.value
        yield container
    finally:
        container.close()


def _open_error(name: str, head: bytes, error: Exception) -> MediaError:
    reason = getattr(error, "strerror", None) or str(error)
    if isinstance(error, PermissionError):
        return MediaError("not_openable", f"{name}: {reason}; check the file's rights")
    if looks_like_media(head):
        return MediaError(
            "not_openable",
            f"{name}: starts like a video, but FFmpeg cannot open it ({reason}); the index is missing"
            " or damaged, fetch the file again",
        )
    return MediaError("not_media", f"{name}: starts with {head[:16]!r}, which is no known video format ({reason})")


def _read_head(path: PathLike) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(4096)
    except OSError as error:
        raise MediaError("not_openable", f"{display_name(path)}: {error.strerror}; check the file's rights") from None


@cache
def _allowed_formats() -> str:
    names = {part for name in av.formats_available for part in name.split(",")}
    return ",".join(sorted(names - _FORMATS_THAT_OPEN_MORE - _FORMATS_OF_TEXT_ART))
