"""Headers that were read once: a second plan over the same files opens none of them.

One SQLite file, `headers.sqlite` beside the timelines (see `cache`). An entry is found by what the file is: path,
device, inode, size, times of last modification and last change, and the versions of vidpipe and PyAV that read it. The
time of change cannot be set by a program, so a file that was replaced, also by one of the same size and date, is
read anew. It may be deleted at any time; when it cannot be used, headers are simply read.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from contextlib import closing
from dataclasses import astuple
from functools import cache
from importlib import metadata
from pathlib import Path

from vidpipe import __version__
from vidpipe.video.cache import WAIT_S, default_index, is_on
from vidpipe.video.container import PathLike, check_file
from vidpipe.video.headers import Header, read_header

_FORMAT = 2
"""Raise when the rules of `read_header` change: older entries are then not used."""
MOST_ENTRIES = 2_000_000
"""About 100 bytes each; the oldest go first."""
KEPT_TOGETHER = 32
"""New headers are written so many at a time, for each writing waits for the disk."""
SETTLED_NS = 2_000_000_000
"""A file that changed so lately may change again within the same tick of its file system's clock: it is not kept."""
_TABLE = """CREATE TABLE IF NOT EXISTS header (number INTEGER PRIMARY KEY, identity BLOB NOT NULL UNIQUE,
    frames INTEGER NOT NULL, fps REAL NOT NULL, width INTEGER NOT NULL, height INTEGER NOT NULL,
    duration_s REAL NOT NULL)"""


def cached_header(path: PathLike, index: Path | None = None) -> Header:
    """Return `read_header(path)`, from `index` (default: the user's cache) when it is there.

    Raises:
        MediaError: it cannot be opened; errors are not kept.
    """
    if not is_on():
        return read_header(path)
    return _headers(index or default_index().with_name("headers.sqlite"), os.getpid()).read(path)


def keep_headers(index: Path | None = None) -> None:
    """Write what this process has read since it last did."""
    if is_on():
        _headers(index or default_index().with_name("headers.sqlite"), os.getpid()).keep()


class _Headers:
    """One process's way to the file."""

    def __init__(self, index: Path) -> None:
        self._index = index
        self._new: dict[bytes, Header] = {}
        self._database: sqlite3.Connection | None = None

    def read(self, path: PathLike) -> Header:
        status = check_file(path)
        identity = _identity(path, status)
        if (header := self._new.get(identity) or self._look_up(identity)) is not None:
            return header
        header = read_header(path)
        if time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) >= SETTLED_NS:
            self._new[identity] = header
            if len(self._new) >= KEPT_TOGETHER:
                self.keep()
        return header

    def keep(self) -> None:
        new, self._new = self._new, {}
        if not new:
            return
        try:
            self._index.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._index, timeout=WAIT_S)) as database, database:
                database.execute(_TABLE)
                database.executemany(
                    "INSERT OR REPLACE INTO header (identity, frames, fps, width, height, duration_s)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    [(identity, *astuple(header)) for identity, header in new.items()],
                )
                database.execute(
                    "DELETE FROM header WHERE number <= (SELECT MAX(number) FROM header) - ?", (MOST_ENTRIES,)
                )
        except (OSError, sqlite3.Error):
            return  # a cache that cannot be written is no reason to stop

    def _look_up(self, identity: bytes) -> Header | None:
        try:
            if self._database is None:
                if not self._index.exists():
                    return None
                self._database = sqlite3.connect(self._index, timeout=WAIT_S, check_same_thread=False)
            row = self._database.execute(
                "SELECT frames, fps, width, height, duration_s FROM header WHERE identity = ?", (identity,)
            ).fetchone()
            return None if row is None else Header(int(row[0]), float(row[1]), int(row[2]), int(row[3]), float(row[4]))
        except (sqlite3.Error, ValueError, TypeError):  # no database, or no such table, or a damaged entry
            return None


@cache
def _headers(index: Path, pid: int) -> _Headers:
    """`pid`: SQLite's connections must not be taken into a child."""
    return _Headers(index)


@cache
def _versions() -> str:
    return f"{_FORMAT} {__version__} {metadata.version('av')}"


def _identity(path: PathLike, status: os.stat_result) -> bytes:
    facts = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, _versions())
    content = repr(facts).encode() + b"\0" + os.fsencode(os.path.abspath(path))  # noqa: PTH100  (bytes)
    return hashlib.blake2b(content, digest_size=16).digest()
