"""What a file's first bytes say about it, independent of its name.

Used for two things only: to refuse playlists before FFmpeg sees them, and to
tell "never was a video" from "a video that lost its index".
"""

from __future__ import annotations

_PLAYLIST_STARTS: tuple[tuple[bytes, str], ...] = (
    (b"#extm3u", "an HLS or M3U playlist"),
    (b"#extinf", "an M3U playlist"),
    (b"ffconcat", "an FFmpeg concat script"),
    (b"[playlist]", "a PLS playlist"),
    (b"[reference]", "an ASX playlist"),
    (b"<asx", "an ASX playlist"),
    (b"rtsptext", "an RTSP link"),
    (b"v=0\n", "an SDP session"),
    (b"v=0\r", "an SDP session"),
)
_PLAYLIST_TAGS: tuple[tuple[bytes, str], ...] = (
    (b"<mpd", "a DASH manifest"),
    (b"<smil", "a SMIL playlist"),
    (b"<smoothstreamingmedia", "a Smooth Streaming manifest"),
    (b"<compositionplaylist", "an IMF playlist"),
    (b"<assetmap", "an IMF asset map"),
    (b"<playlist", "an XSPF playlist"),
)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_MEDIA_STARTS = (
    b"\x1aE\xdf\xa3",  # Matroska, WebM
    b"RIFF",
    b"RIFX",
    b"FLV\x01",
    b"OggS",
    b"\x30\x26\xb2\x75\x8e\x66\xcf\x11",  # ASF, WMV
    b"GIF8",
    b"\x00\x00\x01\xba",  # MPEG program stream
    b"\x00\x00\x01\xb3",  # MPEG-1/2 video
    b"\x00\x00\x01\xb0",  # MPEG-4 part 2 video
    b"\x00\x00\x00\x01",  # H.264, HEVC
    b"DKIF",
    b"YUV4MPEG2",
    b"\x06\x0e\x2b\x34",  # MXF
    b".RMF",
    b"ID3",
    b"fLaC",
    b"\x89PNG",
    b"\xff\xd8\xff",
)
MP4_BOXES = frozenset((b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot", b"moof", b"styp", b"sidx"))


def playlist_kind(head: bytes) -> str | None:
    """Return what sort of playlist `head` (a file's first bytes) begins, or None."""
    text = head.removeprefix(_BYTE_ORDER_MARK).lstrip().lower()
    for start, kind in _PLAYLIST_STARTS:
        if text.startswith(start):
            return kind
    if text.startswith(b"<"):
        for tag, kind in _PLAYLIST_TAGS:
            if tag in text:
                return kind
    return None


def looks_like_media(head: bytes) -> bool:
    """Return whether `head` (a file's first bytes) begins a known media format."""
    if head[4:8] in MP4_BOXES or head.startswith(_MEDIA_STARTS):
        return True
    return any(
        len(head) > offset + 2 * step and all(head[offset + k * step] == 0x47 for k in range(3))
        for offset, step in ((0, 188), (4, 192))  # MPEG transport stream, with and without time prefix
    )
