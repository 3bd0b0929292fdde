"""What `write` and `rename` alone do not promise: survival of a lost host, and that the first writer wins."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from vidpipe.errors import RecipeError

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EACCES)
_AT_FDCWD, _RENAME_NOREPLACE = -100, 1  # <fcntl.h>, <linux/fs.h>

SEEN_LATE_S = 60.0
"""Longest time for which NFS keeps "no such file" (acdirmax)."""


def sync(path: Path) -> None:
    """Bring a file, or a folder's list of names, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def temporary_for(path: Path) -> Path:
    """A name beside `path` that no other process uses."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")


def set_mark(path: Path, values: Mapping[str, Any], *, durable: bool = True) -> bool:
    """Create the small JSON file `path`; False when another process was first.

    The file appears whole: by a hard link, or, where a file system has none, by a renaming that replaces nothing. Where
    it has neither (some FUSE mounts) the file is created exclusively, and `read_mark` passes over one that is still
    being written.

    Args:
        path: The file.
        values: Its content.
        durable: Whether the file survives a lost host from now on.
    """
    content = json.dumps(values, ensure_ascii=True).encode() + b"\n"
    temporary = temporary_for(path)
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        try:
            os.link(temporary, path)
            won = True
        except FileExistsError:
            # NFS may lose the answer to a link that was made, and then says that it exists: the count tells.
            won = temporary.stat().st_nlink == 2
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            won = _rename_to_new(temporary, path, content)
    finally:
        temporary.unlink(missing_ok=True)
    if won and durable:
        sync(path.parent)
    return won


def has_links(folder: Path) -> bool:
    """Whether files in `folder` can have a second name."""
    first, second = temporary_for(folder / "a"), temporary_for(folder / "b")
    try:
        first.touch()
        os.link(first, second)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return False
    finally:
        first.unlink(missing_ok=True)
        second.unlink(missing_ok=True)
    return True


def _rename_to_new(temporary: Path, path: Path, content: bytes) -> bool:
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)  # glibc from 2.28 on
    if rename is None:
        return _create_exclusively(path, content)
    if rename(_AT_FDCWD, os.fsencode(temporary), _AT_FDCWD, os.fsencode(path), _RENAME_NOREPLACE) == 0:
        return True
    number = ctypes.get_errno()
    if number == errno.EEXIST:
        return False
    if number in (*_NO_LINKS, errno.EINVAL):
        return _create_exclusively(path, content)
    raise OSError(number, os.strerror(number), str(path))


def _create_exclusively(path: Path, content: bytes) -> bool:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return False
    try:
        os.write(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return True


def read_mark(path: Path) -> dict[str, Any] | None:
    """What `set_mark` wrote; None when there is none, or when it is not whole yet."""
    try:
        content = _read_again_if_stale(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not content.endswith(b"\n"):
        return None
    values: dict[str, Any] = json.loads(content)
    return values


def wait_until_whole(mark: Path) -> dict[str, Any]:
    """What another process is writing as `mark`.

    Raises:
        RecipeError: it does not come; that process was killed in the middle, where files cannot appear whole.
    """
    end_s = time.monotonic() + SEEN_LATE_S
    while (values := read_mark(mark)) is None:
        if time.monotonic() > end_s:
            raise RecipeError(
                f"{mark}: not whole for {SEEN_LATE_S:.0f} s, so the process that wrote it was killed.\n"
                "Delete it, and type the same command."
            )
        time.sleep(0.1)
    return values


def _read_again_if_stale(path: Path) -> bytes:
    """A file's content; on NFS one that is replaced while it is read is gone for this reader, and read anew."""
    for pause_s in (0.0, 0.1, 1.0):
        try:
            return path.read_bytes()
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise
            time.sleep(pause_s)
    return path.read_bytes()


def await_seen(path: Path) -> Path:
    """`path`, which is known to exist: a host may see a new name on NFS up to a minute late.

    Raises:
        FileNotFoundError: it does not come.
    """
    deadline = time.monotonic() + SEEN_LATE_S
    while not path.exists():
        if time.monotonic() > deadline:
            raise FileNotFoundError(errno.ENOENT, "a done mark names it, but it is not there", str(path))
        time.sleep(0.1)
    return path


def replace_json(path: Path, values: Any, *, durable: bool = True) -> None:
    """Write a JSON file whole, in place of an older one. `durable`: see `set_mark`."""
    temporary = temporary_for(path)
    try:
        temporary.write_text(json.dumps(values, ensure_ascii=True) + "\n")
        if durable:
            sync(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    if durable:
        sync(path.parent)


def server_now_s(folder: Path) -> float:
    """The time of the clock that stamps files in `folder`: on a network file system, the server's."""
    stamp = folder / f".clock.{os.uname().nodename}.{os.getpid()}"
    try:
        stamp.touch()
        return stamp.stat().st_mtime
    except OSError:
        return time.time()  # a directory that may only be read
    finally:
        with suppress(OSError):
            stamp.unlink()
