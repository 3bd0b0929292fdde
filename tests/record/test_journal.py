import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidpipe.record.journal import Journal, read_journal

PAYLOADS = [b"one", b"", b"three" * 10, bytes(range(256))]


def write(path: Path, payloads: list[bytes]) -> None:
    journal = Journal(path, sync_s=0)
    for payload in payloads:
        journal.append(payload)
        journal.tick()
    journal.close()
    journal.close()


def test_records_come_back(tmp_path: Path) -> None:
    write(tmp_path / "j", PAYLOADS)
    assert list(read_journal(tmp_path / "j")) == PAYLOADS


def test_a_tear_at_any_byte_loses_only_what_is_torn(tmp_path: Path) -> None:
    write(tmp_path / "j", PAYLOADS)
    whole = (tmp_path / "j").read_bytes()
    ends = [0]
    for payload in PAYLOADS:
        ends.append(ends[-1] + 8 + len(payload))
    for cut in range(len(whole) + 1):
        (tmp_path / "torn").write_bytes(whole[:cut])
        complete = sum(end <= cut for end in ends[1:])
        assert list(read_journal(tmp_path / "torn")) == PAYLOADS[:complete], cut


def test_a_record_is_readable_before_anything_is_closed(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", sync_s=60)
    journal.append(b"early")
    assert list(read_journal(tmp_path / "j")) == [b"early"]
    journal.close()
    with pytest.raises(ValueError, match="closed"):
        journal.append(b"late")


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=5), st.integers(0, 10_000), st.integers(1, 255))
def test_a_damaged_byte_is_never_read_as_a_record(
    tmp_path_factory, payloads: list[bytes], place: int, flip: int
) -> None:
    path = tmp_path_factory.mktemp("journal") / "j"
    write(path, payloads)
    damaged = bytearray(path.read_bytes())
    damaged[place % len(damaged)] ^= flip
    path.write_bytes(damaged)
    found = list(read_journal(path))
    assert found == payloads[: len(found)] and len(found) < len(payloads)


def test_records_wait_no_longer_than_asked_for_the_disk(tmp_path: Path, disk_calls: list[str]) -> None:
    journal = Journal(tmp_path / "j", sync_s=0)
    journal.tick()
    assert not disk_calls, "nothing to bring there"
    for _ in range(2):
        journal.append(b"one")
        journal.tick()
        journal.tick()
    assert disk_calls == ["file", "folder", "file"]
    patient = Journal(tmp_path / "k", sync_s=60)
    patient.append(b"one")
    patient.tick()
    assert len(disk_calls) == 3
    patient.close()
    assert disk_calls[3:] == ["file", "folder"]
    Journal(tmp_path / "l", sync_s=0).close(keep=False)
    assert len(disk_calls) == 5


def test_the_oldest_record_sets_the_time(
    tmp_path: Path, disk_calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "j", sync_s=5)
    for now_s, synced in ((100.0, False), (104.9, False), (105.0, True), (109.0, True)):
        monkeypatch.setattr(time, "monotonic", lambda now_s=now_s: now_s)
        journal.append(b"one")
        journal.tick()
        assert bool(disk_calls) is synced, now_s
    assert disk_calls == ["file", "folder"]
