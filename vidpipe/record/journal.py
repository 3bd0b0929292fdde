"""The file that finished rows go to at once, so that a killed run repeats only what was in flight.

A record is its length and checksum (two big-endian uint32) and then that many bytes.
Whatever a kill leaves at the end, half a header or half a record, does not check and
is not read; all records before it are.
"""

from __future__ import annotations

import os
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

from vidpipe.record.disk import sync

_HEADER = struct.Struct(">II")
HEADER_BYTES = _HEADER.size
MAX_RECORD_BYTES = 1 << 30


class Journal:
    """An append-only file of records, owned by one process.

    Args:
        path: A file that does not exist yet.
        sync_s: Longest time that a record may wait for `fsync`, if `tick` is called that often.
    """

    def __init__(self, path: Path, sync_s: float) -> None:
        self.path = path
        self._file = path.open("xb", buffering=0)
        self._name_synced = False
        self._sync_s = sync_s
        self._oldest_unsynced: float | None = None

    def append(self, payload: bytes) -> None:
        """Write one record; it survives this process from now on, and the host after `sync_s`."""
        record = _HEADER.pack(len(payload), zlib.crc32(payload)) + payload
        view = memoryview(record)
        while view:
            view = view[self._file.write(view) :]
        if self._oldest_unsynced is None:
            self._oldest_unsynced = time.monotonic()

    def tick(self) -> None:
        """Bring records to the disk if one has waited long enough."""
        if self._oldest_unsynced is not None and time.monotonic() - self._oldest_unsynced >= self._sync_s:
            self._sync()

    def close(self, *, keep: bool = True) -> None:
        """Close; bring everything to the disk first, unless the journal will not be kept. Idempotent."""
        if not self._file.closed:
            if keep:
                self._sync()
            self._file.close()

    def _sync(self) -> None:
        os.fsync(self._file.fileno())
        if not self._name_synced:
            sync(self.path.parent)
            self._name_synced = True
        self._oldest_unsynced = None


def read_journal(path: Path, start: int = 0) -> Iterator[bytes]:
    """The whole records of a journal, in order; a torn end is passed over.

    Args:
        path: The journal.
        start: Byte at which a record begins: the sum of `HEADER_BYTES` and length over those before it.
    """
    with path.open("rb") as file:
        file.seek(start)
        while len(header := file.read(_HEADER.size)) == _HEADER.size:
            length, checksum = _HEADER.unpack(header)
            if length > MAX_RECORD_BYTES:
                return
            payload = file.read(length)
            if len(payload) < length or zlib.crc32(payload) != checksum:
                return
            yield payload
