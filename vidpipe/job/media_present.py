"""Whether the files that rows name are there: a look at the file system, none into the files."""

from __future__ import annotations

from collections.abc import Sequence

from vidpipe.errors import MediaError
from vidpipe.job.prepare import ClipReader
from vidpipe.manifest.row import Medium, Row
from vidpipe.video.container import check_file
from vidpipe.video.picture_video import pictures_in
from vidpipe.video.source import scheme_of


class MediaPresence:
    """Looks for rows' media and subtitle files where a run would; what lies behind a URL is not asked for.

    Args:
        reader: The run's.
    """

    def __init__(self, reader: ClipReader) -> None:
        self._reader = reader
        self._last: tuple[tuple[Medium, ...], MediaError | None] = (), None
        """Media without subtitles, and what was found of them: the rows of a clip mostly stand together."""

    def fault(self, row: Row) -> MediaError | None:
        """What would keep the row's files from being opened: missing, empty, a folder, outside of the root; or None."""
        if row.subtitles:
            return self._first_fault([*row.media, *row.subtitles])
        if row.media != self._last[0]:
            self._last = row.media, self._first_fault(row.media)
        return self._last[1]

    def _first_fault(self, everything: Sequence[Medium | str]) -> MediaError | None:
        return next((found for wanted in everything if (found := self._look(wanted)) is not None), None)

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
