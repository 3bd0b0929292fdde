"""Timelines that were read once: a second run over the same files opens none of them to count frames.

One SQLite file, `timelines.sqlite` in `$XDG_CACHE_HOME/vidpipe` (else
`~/.cache/vidpipe`), keyed by what the file is (device, inode, size, times of last modification and last change) and by
the version of PyAV that read it. The time of change cannot be set by a program, so a file that was replaced is read
anew, also one that was restored from a backup with its old date. The oldest entries go first. It may be deleted at any
time; when it cannot be used, timelines are simply read.
"""

from __future__ import annotations

import io
import json
import os
import sqlite3
import time
import zipfile
import zlib
from contextlib import closing, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import av
import numpy as np

from vidpipe.video.container import PathLike, check_file
from vidpipe.video.packets import PacketTable
from vidpipe.video.timeline import Timeline, read_timeline

_FORMAT = 1
"""Raise when Timeline, PacketTable or the rules that fill them change: older entries are then not used."""
_LIMIT_BYTES = 512 * 2**20
WAIT_S = 2.0
"""For another process that writes."""
SWITCH = "VIDPIPE_NO_CACHE"
"""Variable that, set to anything but 0, turns the caches of timelines and headers off."""
_TABLE = """CREATE TABLE IF NOT EXISTS timeline
    (identity TEXT PRIMARY KEY, read_s REAL NOT NULL, bytes INTEGER NOT NULL, content BLOB NOT NULL)"""


def cached_timeline(path: PathLike, index: Path | None = None) -> Timeline:
    """Return `read_timeline(path)`, from `index` (default: the user's cache) when it is there.

    Errors are not kept: a file that failed is tried again.
    """
    if not is_on():
        return read_timeline(path)
    status = check_file(path)
    changed_ns = f"{status.st_mtime_ns}:{status.st_ctime_ns}"
    identity = f"{_FORMAT}:{status.st_dev}:{status.st_ino}:{status.st_size}:{changed_ns}:{av.__version__}"
    index = index or default_index()
    content = _look_up(index, identity)
    if content is not None:
        with suppress(zlib.error, ValueError, KeyError, TypeError, OSError, zipfile.BadZipFile):  # a damaged entry
            return unpack(content)
    timeline = read_timeline(path)
    _keep(index, identity, pack(timeline))
    return timeline


def is_on() -> bool:
    """Whether the user wants caches."""
    return os.environ.get(SWITCH, "0") in ("", "0")


def default_index() -> Path:
    """Return where the index lies for this user."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "vidpipe" / "timelines.sqlite"


def pack(timeline: Timeline) -> bytes:
    """Write a timeline as bytes; `unpack` is the inverse."""
    arrays = {f"packets.{f.name}": getattr(timeline.packets, f.name) for f in fields(PacketTable)}
    plain: dict[str, Any] = {}
    for field in fields(Timeline):
        value = getattr(timeline, field.name)
        if isinstance(value, np.ndarray):
            arrays[field.name] = value
        elif field.name != "packets":
            plain[field.name] = value
    buffer = io.BytesIO()
    np.savez(buffer, plain=np.array(json.dumps(plain)), **arrays)
    return zlib.compress(buffer.getvalue(), 1)


def unpack(content: bytes) -> Timeline:
    """Read a timeline that `pack` wrote."""
    with np.load(io.BytesIO(zlib.decompress(content)), allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    plain = json.loads(str(arrays.pop("plain")))
    packets = {name.removeprefix("packets."): arrays.pop(name) for name in list(arrays) if "." in name}
    packets["read_error"] = bool(packets["read_error"])
    plain["notes"] = tuple(plain["notes"])
    return Timeline(**plain, **arrays, packets=PacketTable(**packets))


def _look_up(index: Path, identity: str) -> bytes | None:
    if not index.exists():
        return None
    try:
        with closing(sqlite3.connect(index, timeout=WAIT_S)) as database:
            row = database.execute("SELECT content FROM timeline WHERE identity = ?", (identity,)).fetchone()
    except sqlite3.Error:
        return None
    return None if row is None else bytes(row[0])


def _keep(index: Path, identity: str, content: bytes) -> None:
    try:
        index.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(index, timeout=WAIT_S)) as database, database:
            database.execute(_TABLE)
            database.execute(
                "INSERT OR REPLACE INTO timeline VALUES (?, ?, ?, ?)",
                (identity, time.time(), len(content), content),
            )
            _forget_oldest(database)
    except (OSError, sqlite3.Error):
        return  # a cache that cannot be written is no reason to stop


def _forget_oldest(database: sqlite3.Connection) -> None:
    (total,) = database.execute("SELECT TOTAL(bytes) FROM timeline").fetchone()
    if total <= _LIMIT_BYTES:
        return
    for identity, size in database.execute("SELECT identity, bytes FROM timeline ORDER BY read_s").fetchall():
        database.execute("DELETE FROM timeline WHERE identity = ?", (identity,))
        total -= size
        if total <= _LIMIT_BYTES * 0.9:
            return
