"""From what a manifest writes to the file that may be opened; nothing else reaches a decoder."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from pathlib import Path

from vidpipe.errors import MediaError
from vidpipe.video.source import local_path, scheme_of

_PROTOCOL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def media_path(video: str, root: Path, *, allow_outside: bool, schemes: Collection[str] = ()) -> str:
    """The local file, or the allowed URL, that `video` names.

    Args:
        video: A path (relative ones start at `root`), a `file://` URI, or a URL.
        root: Folder that relative paths start from.
        allow_outside: Whether a local file may lie outside `root`, links followed.
        schemes: URL schemes that the recipe allows.

    Raises:
        MediaError: `protocol` for any other URL, `outside_root`, or `not_found` for a path no file can have.
    """
    if "\0" in video:
        raise MediaError("not_found", f"{video!r}: no file name holds a NUL character.")
    scheme = scheme_of(video)
    if scheme in schemes:
        return video
    # A file may be called `a:b.mp4`; `concat:` and `data:` are FFmpeg's and mean nothing here.
    if scheme is None and _PROTOCOL.match(video) and not os.path.lexists(root / video):
        name = video.partition(":")[0]
        raise MediaError("protocol", f"{video[:200]}: {name}: is not opened. Give a path or a file:// URI.")
    path = root / local_path(video)
    if not allow_outside and not path.resolve().is_relative_to(root.resolve()):
        raise MediaError(
            "outside_root", f"{video}: leads out of {root}. Move it, or set media.allow_outside_root: true."
        )
    return str(path)
