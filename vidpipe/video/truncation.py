"""Tell a cut-off file from a short one by the sizes that its own structure states.

A download that stops early leaves a file that opens, plays and ends too soon;
FFmpeg reports an ordinary end of file for it.
"""

from __future__ import annotations

import os
from typing import BinaryIO

from vidpipe.video.container import PathLike
from vidpipe.video.sniff import MP4_BOXES

_EBML = b"\x1aE\xdf\xa3"
_SEGMENT = b"\x18S\x80g"
_OGG_LONGEST_PAGE = 65307


def is_cut(path: PathLike) -> bool:
    """Return whether the file ends before its MP4 boxes, Matroska segment, RIFF chunk, Ogg or GIF do."""
    with open(path, "rb") as file:  # noqa: PTH123  (pathlib takes no bytes)
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        head = file.read(12)
        if head[4:8] in MP4_BOXES:
            return _mp4_end(file, size) > size
        if head.startswith(_EBML):
            return _matroska_end(file) > size
        if head.startswith(b"RIFF") and head[8:11] == b"AVI":
            return 8 + int.from_bytes(head[4:8], "little") > size
        if head.startswith(b"OggS"):
            return not _ogg_is_ended(file, size)
        if head.startswith(b"GIF8"):
            file.seek(size - 1)
            return file.read(1) != b";"
    return False


def _mp4_end(file: BinaryIO, size: int) -> int:
    """Return where the last top-level box ends (ISO/IEC 14496-12, 4.2)."""
    position = 0
    while position < size:
        file.seek(position)
        header = file.read(16)
        length = int.from_bytes(header[:4], "big")
        if header[4:8] not in MP4_BOXES and header[4:8] not in (b"mfra", b"uuid", b"udta", b"meta"):
            return position  # padding or foreign bytes after the video
        if length == 1:
            length = int.from_bytes(header[8:16], "big")
        if length == 0:  # up to the end of the file, wherever that is
            return size
        position += max(length, 8)
    return position


def _matroska_end(file: BinaryIO) -> int:
    """Return where the segment ends (RFC 8794); 0 when it states no size, as live recordings do."""
    file.seek(4)
    header_size, _ = _read_vint(file)
    file.seek(header_size, os.SEEK_CUR)
    if file.read(4) != _SEGMENT:
        return 0
    size, known = _read_vint(file)
    return file.tell() + size if known else 0


def _ogg_is_ended(file: BinaryIO, size: int) -> bool:
    """Return whether the last page says that its stream ends (RFC 3533, header type bit 2)."""
    file.seek(max(0, size - _OGG_LONGEST_PAGE))
    tail = file.read()
    last = tail.rfind(b"OggS")
    return last >= 0 and bool(tail[last + 5 : last + 6].ljust(1, b"\0")[0] & 4)


def _read_vint(file: BinaryIO) -> tuple[int, bool]:
    """Read a variable-length size: (value, whether it is known)."""
    first = file.read(1)
    if not first or first == b"\0":
        return 0, False
    more = 8 - first[0].bit_length()
    value = int.from_bytes(bytes([first[0] & (0x7F >> more)]) + file.read(more), "big")
    return value, value != (1 << (7 * (more + 1))) - 1
