"""From what a manifest writes to the file that may be opened; nothing else reaches a decoder."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit

from vidpipe.errors import MediaError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def media_path(video: str, root: Path, *, allow_outside: bool) -> Path:
    """The local file that `video` names.

    Args:
        video: A path (relative ones start at `root`) or a `file://` URI; percent-encoded
            bytes in a URI need not be UTF-8.
        root: Folder that relative paths start from.
        allow_outside: Whether the file may lie outside `root`, links followed.

    Raises:
        MediaError: `protocol` for any other URL, `outside_root`, or `not_found` for a path no file can have.
    """
    if video.lower().startswith("file://"):
        parts = urlsplit(video)
        if parts.netloc not in ("", "localhost"):
            raise MediaError("protocol", f"{video}: a file URI names a host; write file:///path.")
        # Everything behind the host is path: '?' and '#' are ordinary characters of file names.
        path = Path(os.fsdecode(unquote_to_bytes(video[len("file://") + len(parts.netloc) :])))
    elif "\0" in video:
        raise MediaError("not_found", f"{video!r}: no file name holds a NUL character.")
    elif _SCHEME.match(video) and not os.path.lexists(root / video):
        scheme = video.partition(":")[0]
        raise MediaError("protocol", f"{video[:200]}: {scheme}: is not opened. Give a path or a file:// URI.")
    else:
        path = Path(video)
    path = root / path
    if not allow_outside and not path.resolve().is_relative_to(root.resolve()):
        raise MediaError(
            "outside_root", f"{video}: leads out of {root}. Move it, or set media.allow_outside_root: true."
        )
    return path
