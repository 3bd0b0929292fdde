"""Names of clips: what a manifest or a command line says, as a path that FFmpeg may be given."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit

from vidpipe.errors import MediaError

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)://")


def scheme_of(name: str) -> str | None:
    """Return the lower-case URL scheme of `name`, None for a path."""
    match = _SCHEME.match(name)
    return None if match is None else match.group(1).lower()


def local_path(name: str) -> str:
    """Return the path that `name`, a path or a `file://` URI, means.

    The path carries bytes that are not UTF-8 as Python does (surrogate escapes).
    MediaError `protocol` for any other scheme.
    """
    scheme = scheme_of(name)
    if scheme is None:
        return name
    name = uri_or_name(name)  # printable, for the messages
    if scheme != "file":
        raise MediaError("protocol", f"{name}: {scheme}:// is not allowed; add it to `media.schemes`")
    parts = urlsplit(name)
    if parts.netloc not in ("", "localhost"):
        raise MediaError("protocol", f"{name}: names the host {parts.netloc}; use file:///path")
    if parts.query or parts.fragment:
        raise MediaError("protocol", f"{name}: write ? as %3F and # as %23 in a file:// URI")
    return os.fsdecode(unquote_to_bytes(parts.path))


def uri_or_name(name: str) -> str:
    """Return `name` when it is UTF-8 text, else its absolute percent-encoded `file://` URI."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return Path(name).absolute().as_uri()
    return name
