"""Counting a run again and again: the same as counting it once, whatever is torn, taken over or published meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.record.runs import make_run, row, writer_for
from vidpipe.record import tally
from vidpipe.record.failures import Failed
from vidpipe.record.journal import HEADER_BYTES, Journal, read_journal
from vidpipe.record.row import Status
from vidpipe.record.run_dir import RunDir
from vidpipe.record.shard_writer import ShardWriter
from vidpipe.record.shards import Sizes, read_sizes
from vidpipe.record.status import StatusReader
from vidpipe.record.tally import Tally

SHARDS = [["a0", "a1", "a2"], ["b0", "b1"]]
STEPS = st.lists(st.tuples(st.sampled_from(["append", "fail", "tear", "take over", "look"]), st.integers(0, 1)))


def failed_row(row_id: str) -> Any:
    status: Status = "media_error"
    return row(row_id, status=status, error_kind="not_found", error=f"{row_id} is gone")


@settings(max_examples=20)
@given(STEPS)
def test_looking_often_counts_what_looking_once_does(steps: list[tuple[str, int]]) -> None:
    with TemporaryDirectory() as folder:
        run_dir = make_run(Path(folder) / "run", SHARDS)
        often, expected, failed = Tally(run_dir), Counter[str](), 0
        left = [list(ids) for ids in SHARDS]
        writers: list[ShardWriter | None] = [writer_for(run_dir, 0), writer_for(run_dir, 1)]
        for step, shard in steps:
            writer = writers[shard]
            if writer is None:
                continue
            if step in ("append", "fail"):
                row_id = left[shard].pop()
                writer.append(failed_row(row_id) if step == "fail" else row(row_id), {})
                expected["media_error" if step == "fail" else "ok"] += 1
                failed += step == "fail"
                if writer.whole:
                    writer.publish()
                    writers[shard] = None
            elif step == "look":
                often.look()
            else:
                if step == "tear":
                    with run_dir.journal_file(shard, writer.lease.attempt).open("ab") as file:
                        file.write(b"\0\0\0\x09\0\0\0\0half")
                writer.give_back(died=True)
                writers[shard] = writer_for(run_dir, shard)
        once = Tally(run_dir)
        for one in (often, once):
            one.look()
            assert sum(one.statuses.values(), Counter()) == expected
            assert sum(kind.rows for kind in one.failures.most_first) == failed
        for open_writer in filter(None, writers):
            open_writer.give_back(died=False)


def test_nothing_is_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_dir = make_run(tmp_path / "run", [["r0", "r1"], ["s0"]])
    done, at_work = writer_for(run_dir, 1), writer_for(run_dir, 0)
    done.append(failed_row("s0"), {})
    done.publish()
    at_work.append(row("r0"), {})
    reader = StatusReader(run_dir.path)
    assert reader.read().failures == (Failed("not_found", 1, "s0 is gone"),)
    read: list[bytes] = []

    def counting(path: Path, start: int = 0) -> Iterator[bytes]:
        for payload in read_journal(path, start):
            read.append(payload)
            yield payload

    monkeypatch.setattr(tally, "read_journal", counting)
    monkeypatch.setattr(tally, "read_mark", lambda path: pytest.fail(f"{path} is read again"))
    assert reader.read().recorded == 2 and read == []
    at_work.append(row("r1"), {})
    assert reader.read().recorded == 3 and len(read) == 1
    at_work.give_back(died=False)


def test_a_run_begun_afresh_is_counted_afresh(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", [["r0"]])
    writer = writer_for(run_dir)
    writer.append(row("r0"), {})
    writer.publish()
    counted = Tally(run_dir)
    counted.look()
    assert counted.statuses == {0: Counter(ok=1)}
    run_dir.clear()
    again = make_run(tmp_path / "run", [["r0", "r1"]])
    again.update_run({**(again.read_run() or {}), "started": "2026-01-02T00:00:00+00:00"})
    writer = writer_for(again)
    writer.append(failed_row("r0"), {})
    counted.look()
    assert counted.statuses == {0: Counter(media_error=1)}
    writer.give_back(died=False)


@given(st.lists(st.binary(max_size=40), max_size=8), st.data())
def test_a_journal_is_read_on_from_any_record(payloads: list[bytes], data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        journal = Journal(Path(folder) / "j", sync_s=99)
        for payload in payloads:
            journal.append(payload)
        journal.close(keep=False)
        first = data.draw(st.integers(0, len(payloads)))
        start = sum(HEADER_BYTES + len(payload) for payload in payloads[:first])
        assert list(read_journal(journal.path, start)) == payloads[first:]


def test_sizes_need_one_column_and_rows_stand_in_for_costs(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", SHARDS)
    assert read_sizes(run_dir) == Sizes({0: 3, 1: 2}, {0: 9, 1: 9}) and read_sizes(run_dir).cost_a_row(0) == 3
    mark = run_dir.plans / "000000"
    mark.write_text(mark.read_text().replace("[9, 9]", "[9, 0]"))
    assert read_sizes(run_dir).cost == {0: 9, 1: 0}
    mark.write_text(mark.read_text().replace("[9, 0]", "[0, 0]"))
    assert read_sizes(run_dir).cost == {0: 3, 1: 2}
    assert read_sizes(RunDir(tmp_path / "none")) == Sizes({}, {})
