"""Marks and files: made once, and on the disk before they have their names."""

import errno
import os
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.record.runs import make_run, row, writer_for
from vidpipe.record import disk
from vidpipe.record.disk import has_links, read_mark, replace_json, set_mark
from vidpipe.record.run_dir import RunDir
from vidpipe.record.shards import write_order


def test_marks_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set_mark(tmp_path / "a", {"n": 1}) and not set_mark(tmp_path / "a", {"n": 2})
    assert read_mark(tmp_path / "a") == {"n": 1} and read_mark(tmp_path / "none") is None

    def no_links(*paths: object) -> None:
        raise PermissionError(1, "this file system has no links")

    assert has_links(tmp_path)
    monkeypatch.setattr(os, "link", no_links)
    assert not has_links(tmp_path)
    assert set_mark(tmp_path / "b", {"n": 1}) and not set_mark(tmp_path / "b", {"n": 2})
    assert read_mark(tmp_path / "b") == {"n": 1}
    (tmp_path / "half").write_text('{"n"')
    assert read_mark(tmp_path / "half") is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "half"]


def test_nothing_gets_its_name_before_it_is_on_the_disk(tmp_path: Path, disk_calls: list[str]) -> None:
    set_mark(tmp_path / "a", {})
    replace_json(tmp_path / "a", {})
    assert disk_calls == ["file", "link", "folder", "file", "replace", "folder"]
    disk_calls.clear()
    set_mark(tmp_path / "b", {}, durable=False)
    replace_json(tmp_path / "b", {}, durable=False)
    assert disk_calls == ["link", "replace"]
    disk_calls.clear()
    write_order(RunDir(tmp_path), ["r0"])
    assert disk_calls == ["file", "replace", "folder"]
    run_dir = make_run(tmp_path / "run", [["r0"]])
    disk_calls.clear()
    writer = writer_for(run_dir)
    writer.append(row("r0"), {})
    assert disk_calls == ["link"], "a claim that a lost host forgets is free, and nobody waits for the disk"
    disk_calls.clear()
    writer.give_back(died=False)
    assert disk_calls == ["file", "folder"]
    writer = writer_for(run_dir)
    disk_calls.clear()
    writer.publish()
    assert disk_calls == ["file", "replace", "folder", "file", "link", "folder"], "the part, then its mark"


def test_a_mark_without_links_is_on_the_disk_too(
    tmp_path: Path, disk_calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", Mock(side_effect=OSError(errno.ENOTSUP, "no links")))
    assert set_mark(tmp_path / "a", {})
    assert disk_calls == ["file", "folder"]
    (tmp_path / "plain").touch(0o644)
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "plain").stat().st_mode, "others may read it"
    (tmp_path / "plain").unlink()
    monkeypatch.setattr(os, "link", Mock(side_effect=OSError(errno.ENOSPC, "full")))
    for call in (lambda: set_mark(tmp_path / "b", {}), lambda: has_links(tmp_path)):
        with pytest.raises(OSError, match="full"):
            call()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    monkeypatch.setattr(Path, "open", Mock(side_effect=OSError(errno.ENOSPC, "full")))
    with pytest.raises(OSError, match="full"):
        set_mark(tmp_path / "b", {})


def test_without_links_a_mark_appears_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", Mock(side_effect=OSError(errno.EPERM, "no links")))
    monkeypatch.setattr(disk, "_create_exclusively", Mock(side_effect=AssertionError("a kill would leave half of it")))
    assert set_mark(tmp_path / "a", {"n": 1}) and not set_mark(tmp_path / "a", {"n": 2})
    assert read_mark(tmp_path / "a") == {"n": 1} and [path.name for path in tmp_path.iterdir()] == ["a"]
    with pytest.raises(OSError, match="too long"):
        disk._rename_to_new(tmp_path / "a", tmp_path / ("b" * 300), b"")


def test_without_links_and_such_renaming_the_first_still_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", Mock(side_effect=OSError(errno.EPERM, "no links")))
    monkeypatch.setattr(disk, "_RENAME_NOREPLACE", 1 << 30)  # as a file system that does not know it: EINVAL
    assert set_mark(tmp_path / "a", {"n": 1}) and not set_mark(tmp_path / "a", {"n": 2})
    assert read_mark(tmp_path / "a") == {"n": 1} and [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_lost_answer_to_a_link_is_no_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = os.link

    def answer_lost(source: object, target: object) -> None:
        original(source, target)  # type: ignore[arg-type]
        raise FileExistsError

    monkeypatch.setattr(os, "link", answer_lost)
    assert set_mark(tmp_path / "a", {"n": 1})
    monkeypatch.setattr(os, "link", original)
    assert not set_mark(tmp_path / "a", {"n": 2})
