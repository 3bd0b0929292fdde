"""Remote clips: copied into a bounded folder, so that FFmpeg only ever opens local files.

Which schemes may be used is the recipe's to say (`media.schemes`); fsspec does the
transport. A copy belongs to one version of the remote file, and several processes
may share the folder: a lock on each copy keeps it while it is in use.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import fsspec

from vidpipe.errors import MediaError
from vidpipe.extras import install
from vidpipe.video.source import local_path, scheme_of

_PIECE_BYTES = 1 << 20
_PART = ".part-"
_VERSION_KEYS = ("size", "ETag", "etag", "mtime", "LastModified", "updated", "created", "generation")


@dataclass(frozen=True)
class Sources:
    """Where clips may come from, and where copies of remote ones are kept."""

    schemes: frozenset[str]
    """URL schemes that the recipe allows, lower case, without `file`."""
    folder: Path
    limit_bytes: int
    """Copies not in use are removed, least recently used first, to stay below this."""

    @contextmanager
    def local(self, name: str) -> Iterator[str]:
        """Yield a local path of the clip `name`; a remote one's copy stays while the context is open.

        MediaError `protocol` for a scheme that is not allowed, `not_found`,
        `not_openable`, `too_large` or `truncated` when it cannot be fetched.
        """
        scheme = scheme_of(name)
        if scheme is None or scheme == "file" or scheme not in self.schemes:
            yield local_path(name)
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        with _explained(name):
            filesystem, remote = fsspec.core.url_to_fs(name)
            info = filesystem.info(remote)
        copy = self.folder / _copy_name(name, info)
        held = _hold(copy)
        if held is None:
            size = info.get("size")
            self._make_room(name, size or 0)
            held = self._fetch(name, filesystem, remote, size, copy)
        try:
            os.utime(copy)
            yield str(copy)
        finally:
            os.close(held)

    def _fetch(self, name: str, filesystem: Any, remote: str, size: int | None, copy: Path) -> int:
        """Fetch to a file of another name, then give it its own: half a clip never stands there.

        Returns the descriptor that holds it. Processes that want it at the same moment
        each fetch it; the last one's stays.
        """
        held, part = tempfile.mkstemp(dir=self.folder, prefix=_PART)
        try:
            fcntl.flock(held, fcntl.LOCK_SH)
            came = 0
            with (
                _explained(name),
                filesystem.open(remote, "rb") as source,
                open(held, "wb", closefd=False) as file,
            ):
                while piece := source.read(_PIECE_BYTES):
                    came += len(piece)
                    if came > self.limit_bytes:
                        raise _too_large(name, came, self.limit_bytes)
                    file.write(piece)
            if size is not None and came != size:
                raise MediaError("truncated", f"{name}: {came} of {size} bytes came; try again")
            Path(part).replace(copy)
        except BaseException:
            Path(part).unlink(missing_ok=True)
            os.close(held)
            raise
        return held

    def _make_room(self, name: str, size: int) -> None:
        """Remove copies that nobody uses, and what killed processes left of theirs."""
        if size > self.limit_bytes:
            raise _too_large(name, size, self.limit_bytes)
        copies: list[tuple[int, int, Path]] = []
        for path in self.folder.iterdir():
            with suppress(FileNotFoundError):  # another process makes room too
                status = path.stat()
                copies.append((status.st_mtime_ns, status.st_size, path))
        total = sum(held for _, held, _ in copies) + size
        for _, held, path in sorted(copies):
            if total <= self.limit_bytes:
                return
            if _remove_unused(path):
                total -= held


def _hold(copy: Path) -> int | None:
    """Return a descriptor that keeps the copy from being removed; None when there is none."""
    while True:
        try:
            held = os.open(copy, os.O_RDONLY)
        except FileNotFoundError:
            return None
        fcntl.flock(held, fcntl.LOCK_SH)
        if os.fstat(held).st_nlink:
            return held
        os.close(held)  # removed between opening and locking


def _remove_unused(path: Path) -> bool:
    try:
        held = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
    except BlockingIOError:
        return False
    finally:
        os.close(held)
    return True


def _copy_name(name: str, info: dict[str, Any]) -> str:
    version = [f"{key}={info[key]}" for key in _VERSION_KEYS if info.get(key) is not None]
    digest = hashlib.sha256("\n".join([name, *version]).encode()).hexdigest()[:32]
    return digest + PurePosixPath(urlsplit(name).path).suffix[:16]


def _too_large(name: str, size: int, limit: int) -> MediaError:
    return MediaError("too_large", f"{name}: {size} bytes and more; the folder for copies may hold {limit}")


@contextmanager
def _explained(name: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        if isinstance(cause := error.__cause__, OSError):  # so fsspec wraps a host that does not answer
            raise MediaError("not_openable", f"{name}: cannot be fetched ({cause})") from None
        raise MediaError("not_found", f"{name}: the server has no such file") from None
    except ImportError as error:
        raise MediaError("not_openable", f"{name}: {error}; type: {install('remote')}") from None
    except MediaError:
        raise
    except Exception as error:  # every back end has its own exceptions
        raise MediaError("not_openable", f"{name}: cannot be fetched ({type(error).__name__}: {error})") from None
