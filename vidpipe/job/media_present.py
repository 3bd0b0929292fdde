"""Whether the files that rows name are there: a look at the file system, none into the files."""

from __future__ import annotations

from vidpipe.errors import MediaError
from vidpipe.job.prepare import ClipReader
from vidpipe.manifest.row import Medium, Row
from vidpipe.video.container import check_file
from vidpipe.video.picture_video import pictures_in
from vidpipe.video.source import scheme_of

NAMES_KEPT = 4096
"""What was found of so many names is remembered: the rows of a clip mostly stand together."""


class MediaPresence:
    """Looks for rows' media and subtitle files where a run would; what lies behind a URL is not asked for.

    Args:
        reader: The run's.
    """

    def __init__(self, reader: ClipReader) -> None:
        self._reader = reader
        self._known: dict[str | tuple[str, str, tuple[str, ...]], MediaError | None] = {}
        self._last: tuple[tuple[Medium, ...], MediaError | None] = (), None

    def fault(self, row: Row) -> MediaError | None:
        """What would keep the row's files from being opened: missing, empty, a folder, outside of the root; or None."""
        if row.subtitles:
            return self._first_fault([*row.media, *row.subtitles])
        if row.media != self._last[0]:
            self._last = row.media, self._first_fault(list(row.media))
        return self._last[1]

    def _first_fault(self, everything: list[Medium | str]) -> MediaError | None:
        for wanted in everything:
            key = (wanted.kind, wanted.name, wanted.pictures) if isinstance(wanted, Medium) else wanted
            if key not in self._known:
                if len(self._known) >= NAMES_KEPT:
                    self._known.clear()
                self._known[key] = self._look(wanted)
            if (found := self._known[key]) is not None:
                return found
        return None

    def _look(self, wanted: Medium | str) -> MediaError | None:
        try:
            if isinstance(wanted, Medium) and wanted.kind == "frames" and not wanted.pictures:
                pictures_in(self._reader.path(wanted.name))
                return None
            names = (wanted,) if isinstance(wanted, str) else wanted.pictures or (wanted.name,)
            for name in names:
                path = self._reader.path(name)
                if scheme_of(path) is None:
                    check_file(path)
        except MediaError as error:
            return error
        return None
