from __future__ import annotations

import os
import sqlite3
import time
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from tests.video.clips import write_blocks
from vidpipe.errors import MediaError
from vidpipe.video import cache
from vidpipe.video.packets import PacketTable
from vidpipe.video.timeline import Timeline, read_timeline


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    return write_blocks(tmp_path / "clip.mkv", numbers=range(12))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files whose packets were read, in order."""
    seen: list[Path] = []

    def read(path: Path) -> Timeline:
        seen.append(path)
        return read_timeline(path)

    monkeypatch.setattr(cache, "read_timeline", read)
    return seen


def assert_same(a: Timeline, b: Timeline) -> None:
    for one, other, kind in ((a, b, Timeline), (a.packets, b.packets, PacketTable)):
        for field in fields(kind):
            if field.name != "packets":
                assert np.array_equal(getattr(one, field.name), getattr(other, field.name)), field.name
                assert type(getattr(one, field.name)) is type(getattr(other, field.name))


def test_packing_keeps_everything(clip: Path) -> None:
    timeline = read_timeline(clip)
    assert_same(cache.unpack(cache.pack(timeline)), timeline)


def test_a_second_look_reads_nothing(clip: Path, tmp_path: Path, reads: list[Path]) -> None:
    index = tmp_path / "deep" / "index.sqlite"
    first = cache.cached_timeline(clip, index)
    assert_same(cache.cached_timeline(clip, index), first)
    assert reads == [clip]


def test_a_changed_file_is_read_anew(clip: Path, tmp_path: Path, reads: list[Path]) -> None:
    index = tmp_path / "index.sqlite"
    cache.cached_timeline(clip, index)
    write_blocks(clip, numbers=range(7))
    assert len(cache.cached_timeline(clip, index)) == 7
    os.utime(clip, ns=(1, 1))
    cache.cached_timeline(clip, index)
    assert len(reads) == 3


def test_a_file_restored_with_its_date_is_read_anew(clip: Path, tmp_path: Path, reads: list[Path]) -> None:
    """A disk that loses bits changes neither size nor date, and `cp -p` and `rsync --inplace` keep the inode."""
    index, sound, status = tmp_path / "index.sqlite", clip.read_bytes(), clip.stat()
    clip.write_bytes(sound[: len(sound) * 3 // 4].ljust(len(sound), b"\0"))
    os.utime(clip, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert len(cache.cached_timeline(clip, index)) < 12
    time.sleep(0.05)  # a tick of the file system's clock
    clip.write_bytes(sound)
    os.utime(clip, ns=(status.st_atime_ns, status.st_mtime_ns))
    whole = cache.cached_timeline(clip, index)
    assert (len(whole), whole.missing, len(reads)) == (12, 0, 2)


def test_an_unusable_index_costs_only_time(clip: Path, tmp_path: Path, reads: list[Path]) -> None:
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(b"not a database, but long enough to be taken for one" * 100)
    (tmp_path / "file").write_text("")
    for index in (broken, tmp_path / "file" / "index.sqlite"):
        assert len(cache.cached_timeline(clip, index)) == 12
    assert len(reads) == 2


@pytest.mark.parametrize("damage", [b"", b"noise", "half"])
def test_a_damaged_entry_is_read_anew(clip: Path, tmp_path: Path, reads: list[Path], damage: bytes | str) -> None:
    index = tmp_path / "index.sqlite"
    content = cache.pack(cache.cached_timeline(clip, index))
    with sqlite3.connect(index) as database:
        database.execute(
            "UPDATE timeline SET content = ?", (content[: len(content) // 2] if damage == "half" else damage,)
        )
    database.close()
    assert len(cache.cached_timeline(clip, index)) == 12
    assert len(reads) == 2
    cache.cached_timeline(clip, index)
    assert len(reads) == 2


def test_the_index_stays_within_its_limit(tmp_path: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    index = tmp_path / "index.sqlite"
    clips = [write_blocks(tmp_path / f"{n}.mp4", numbers=range(3)) for n in range(6)]
    monkeypatch.setattr(cache, "_LIMIT_BYTES", 4 * len(cache.pack(read_timeline(clips[0]))))
    for clip in clips:
        cache.cached_timeline(clip, index)
    with sqlite3.connect(index) as database:
        (entries,) = database.execute("SELECT COUNT(*) FROM timeline").fetchone()
    database.close()
    assert 1 <= entries <= 4
    reads.clear()
    cache.cached_timeline(clips[-1], index)
    assert reads == []


def test_errors_are_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "clip.mp4"
    path.write_bytes(b"")
    with pytest.raises(MediaError):
        cache.cached_timeline(path, tmp_path / "index.sqlite")
    write_blocks(path, numbers=range(3))
    assert len(cache.cached_timeline(path, tmp_path / "index.sqlite")) == 3


def test_the_index_lies_in_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.default_index() == tmp_path / "vidpipe" / "timelines.sqlite"
