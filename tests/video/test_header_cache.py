from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.video.clips import write_blocks
from vidpipe.errors import MediaError
from vidpipe.video import cache, header_cache
from vidpipe.video.header_cache import cached_header, keep_headers
from vidpipe.video.headers import Header, read_header

Reopen = Callable[[], None]


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "headers.sqlite"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were opened, in order; files just written count as settled."""
    seen: list[Path] = []

    def read(path: Path) -> Header:
        seen.append(path)
        return read_header(path)

    monkeypatch.setattr(header_cache, "read_header", read)
    monkeypatch.setattr(header_cache, "SETTLED_NS", 0)
    return seen


def as_another_process(index: Path) -> None:
    """Write what is new and forget what this process knows."""
    keep_headers(index)
    header_cache._headers.cache_clear()


def test_a_second_look_opens_nothing(index: Path, tmp_path: Path, reads: list[Path]) -> None:
    clip = write_blocks(tmp_path / "clip.mp4", numbers=range(12))
    first = cached_header(clip, index)
    assert cached_header(clip, index) == first == read_header(clip) and first.frames == 12
    as_another_process(index)
    assert cached_header(clip, index) == first and reads == [clip]


def test_a_file_of_the_same_size_and_date_is_not_taken_for_the_old_one(
    index: Path, tmp_path: Path, reads: list[Path]
) -> None:
    clip = write_blocks(tmp_path / "clip.mp4", numbers=range(12))
    other = write_blocks(tmp_path / "other.mp4", numbers=range(7))
    length = max(clip.stat().st_size, other.stat().st_size)
    for path in (clip, other):
        with path.open("ab") as file:
            file.write(b"\0" * (length - path.stat().st_size))
    assert cached_header(clip, index).frames == 12
    as_another_process(index)
    before = clip.stat()
    clip.write_bytes(other.read_bytes())  # in place: the same inode
    os.utime(clip, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = clip.stat()
    assert (after.st_ino, after.st_size, after.st_mtime_ns) == (before.st_ino, before.st_size, before.st_mtime_ns)
    assert cached_header(clip, index).frames == 7
    as_another_process(index)
    clip.rename(tmp_path / "moved.mp4")
    assert cached_header(tmp_path / "moved.mp4", index).frames == 7 and len(reads) == 3


def test_another_version_reads_anew(
    index: Path, tmp_path: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    clip = write_blocks(tmp_path / "clip.mp4", numbers=range(3))
    cached_header(clip, index)
    as_another_process(index)
    monkeypatch.setattr(header_cache, "_versions", lambda: "a later vidpipe")
    cached_header(clip, index)
    assert len(reads) == 2


def test_a_file_that_has_just_changed_is_not_kept(
    index: Path, tmp_path: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(header_cache, "SETTLED_NS", 3600 * 10**9)
    clip = write_blocks(tmp_path / "clip.mp4", numbers=range(3))
    os.utime(clip, ns=(1, 1))  # as a copy that keeps dates; the time of change tells
    for _ in range(2):
        cached_header(clip, index)
        as_another_process(index)
    assert len(reads) == 2 and not index.exists()


def test_errors_are_not_kept(index: Path, tmp_path: Path, reads: list[Path]) -> None:
    clip = tmp_path / "clip.mp4"
    for content in (b"", b"no video at all" * 100):
        clip.write_bytes(content)
        for _ in range(2):
            with pytest.raises(MediaError):
                cached_header(clip, index)
    write_blocks(clip, numbers=range(3))
    assert cached_header(clip, index).frames == 3


@pytest.mark.parametrize("spoil", ["noise", "no folder", "other table", "words"])
def test_an_unusable_index_costs_only_time(spoil: str, index: Path, tmp_path: Path, reads: list[Path]) -> None:
    clip = write_blocks(tmp_path / "clip.mp4", numbers=range(12))
    if spoil == "no folder":
        index.parent.write_text("")
    else:
        index.parent.mkdir()
    if spoil == "noise":
        index.write_bytes(b"not a database, but long enough to be taken for one" * 100)
    if spoil in ("other table", "words"):
        cached_header(clip, index)
        as_another_process(index)
        with sqlite3.connect(index) as database:
            change = "DROP TABLE header" if spoil == "other table" else "UPDATE header SET frames = 'many'"
            database.execute(change)
        database.close()
        reads.clear()
    for _ in range(2):
        assert cached_header(clip, index).frames == 12
        as_another_process(index)
    assert reads and len(reads) <= 2


def test_the_index_stays_within_its_limit(
    index: Path, tmp_path: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(header_cache, "MOST_ENTRIES", 4)
    clips = [write_blocks(tmp_path / f"{n}.mp4", numbers=range(3)) for n in range(6)]
    for clip in clips:
        cached_header(clip, index)
        as_another_process(index)
    with sqlite3.connect(index) as database:
        (entries,) = database.execute("SELECT COUNT(*) FROM header").fetchone()
    database.close()
    assert entries == 4
    reads.clear()
    for clip in clips[-4:]:
        cached_header(clip, index)
    assert reads == []


def test_a_variable_turns_the_caches_off(
    index: Path, tmp_path: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    clip = write_blocks(tmp_path / "clip.mp4", numbers=range(3))
    monkeypatch.setenv(cache.SWITCH, "1")
    for _ in range(2):
        cached_header(clip, index)
        cache.cached_timeline(clip, index.with_name("timelines.sqlite"))
        keep_headers(index)
    assert len(reads) == 2 and not index.parent.exists()
    monkeypatch.setenv(cache.SWITCH, "0")
    cached_header(clip, index)
    as_another_process(index)
    assert index.exists()


WRITER = """
import sys
from pathlib import Path
from vidpipe.video import header_cache
header_cache.SETTLED_NS, header_cache.KEPT_TOGETHER = 0, 2
index, clips = Path(sys.argv[1]), sorted(Path(sys.argv[2]).glob("*.mp4"))
for clip in clips:
    print(header_cache.cached_header(clip, index).frames)
header_cache.keep_headers(index)
"""


def test_several_processes_share_it(index: Path, tmp_path: Path, reads: list[Path]) -> None:
    clips = [write_blocks(tmp_path / f"{n:02}.mp4", numbers=range(n + 1)) for n in range(12)]
    command = [sys.executable, "-c", WRITER, str(index), str(tmp_path)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for process in processes:
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0 and [int(line) for line in out.split()] == list(range(1, 13))
    assert [cached_header(clip, index).frames for clip in clips] == list(range(1, 13)) and reads == []
