"""Rows into a run directory and out of it again: schema, shards, leases, merge, status."""

import json
import os
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.record.runs import COLUMNS, LEASE_S, claim, ids_of, make_run, row, writer_for
from vidpipe.errors import RecipeError
from vidpipe.manifest.row import ColumnKind
from vidpipe.record import disk, entries
from vidpipe.record import merge as merge_module
from vidpipe.record.disk import read_mark, set_mark
from vidpipe.record.entries import Entry
from vidpipe.record.holder import this_process
from vidpipe.record.merge import is_complete, merge
from vidpipe.record.row import FramesRecord, MediaRecord, OutputRow, ReplyRecord, VisionTokens
from vidpipe.record.run_dir import RunDir
from vidpipe.record.schema import KIND_KEY, output_schema, to_json
from vidpipe.record.shard_writer import RESOLVED_KEY
from vidpipe.record.shards import add_shards, read_shards, write_order
from vidpipe.record.status import read_status


def test_one_row_there_and_back(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", [["r0", "r1", "r2"]])
    written = row("r0", manifest={"video": "a.mp4", "answer": {"x": [1, None]}, "frames": "own", "text": "own text"})
    writer_for(run_dir).append(written, {"sampling": {"fps": 2}})
    merged = merge([run_dir.path], tmp_path / "out.parquet")
    table = pq.read_table(tmp_path / "out.parquet")
    (read,) = table.to_pylist()
    assert merged.partial and merged.rows == 1 and merged.expected == 3 and merged.missing == ("r1", "r2")
    assert read["frames"] == {"count": 2, "indices": [0, 5], "times_s": [0.0, 0.5], "size_wh": [64, 48], "sha": "abc"}
    assert json.loads(read["answer"]) == {"x": [1, None]}
    assert read["text"] == "text r0" and read["manifest.text"] == "own text" and read["manifest.frames"] == '"own"'
    assert table.schema.field("answer").metadata == {KIND_KEY: b"json"}
    assert json.loads(table.schema.metadata[RESOLVED_KEY.encode()]) == {"s1": {"sampling": {"fps": 2}}}
    assert table.schema.metadata[b"vidpipe.partial"] == b"true" and not is_complete(tmp_path / "out.parquet", 1)


def test_numbers_that_a_header_or_a_recipe_makes_have_room(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", [["r0"]])
    most = 2**62
    frames = FramesRecord(1, [most], [0.0], [most, most], "abc")
    wide = row("r0", media=MediaRecord("ok", most), frames=frames, vision_tokens=VisionTokens(most, most))
    writer_for(run_dir).append(wide, {})
    merge([run_dir.path], tmp_path / "out.parquet")
    (read,) = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert read["media"]["frames_missing"] == read["vision_tokens"]["asked"] == read["frames"]["size_wh"][0] == most


def test_a_published_shard_keeps_its_settings_and_counts(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", [["r0", "r1"]])
    writer = writer_for(run_dir)
    writer.append(row("r0"), {"a": 1})
    writer.append(row("r0", text="a second record of a row does not count"), {"a": 1})
    writer.append(row("r1", status="length", resolved=None), {})
    assert writer.whole and writer.publish()
    mark = read_mark(run_dir.done_file(0))
    assert mark is not None and mark["statuses"] == {"ok": 1, "length": 1} and mark["rows"] == 2
    merge([run_dir.path], run_dir.results)
    table = pq.read_table(run_dir.results)
    assert table["text"].to_pylist() == ["text r0", "text r1"] and is_complete(run_dir.results, 2)
    assert json.loads(table.schema.metadata[RESOLVED_KEY.encode()]) == {"s1": {"a": 1}}
    assert not list(run_dir.parts.glob("*.rows"))


def test_texts_that_utf8_cannot_hold_are_written(tmp_path: Path) -> None:
    texts = ["half \ud83d pair", "nul \0", "", None, "x" * 100_000]
    ids = [f"r{i}" for i in range(len(texts))]
    run_dir = make_run(tmp_path / "run", [ids])
    writer = writer_for(run_dir)
    for row_id, text in zip(ids, texts, strict=True):
        writer.append(row(row_id, text=text, manifest={"answer": "\ud83d", "video": "\ud83d"}), {})
    writer.publish()
    merge([run_dir.path], run_dir.results)
    rows = pq.read_table(run_dir.results).to_pylist()
    assert [r["text"] for r in rows] == ["half \ufffd pair", "nul \0", "", None, "x" * 100_000]
    assert json.loads(rows[0]["answer"]) == "\ud83d" and rows[0]["video"] == "\ufffd"


def test_no_two_columns_have_one_name() -> None:
    columns: dict[str, ColumnKind] = dict.fromkeys(
        ("status", "manifest.status", "manifest.manifest.status", "manifest.other", "other"), "text"
    )
    names = output_schema(columns).names
    assert len(set(names)) == len(names)
    written = json.loads(to_json(OutputRow("a", None, "ok", manifest={name: name for name in columns}), columns))
    assert (written["status"], written["manifest.status"], written["manifest.manifest.status"]) == (
        "ok",
        "status",
        "manifest.status",
    )
    assert (written["manifest.other"], written["other"]) == ("manifest.other", "other")


def test_no_row_is_an_empty_file_of_the_same_schema(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", [])
    assert not merge([run_dir.path], run_dir.results).partial
    assert pq.read_table(run_dir.results).schema.names == output_schema(COLUMNS).names


def test_merged_rows_stand_in_manifest_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_module, "BUCKET_ROWS", 2)
    run_dir = make_run(tmp_path / "run", [["r0", "r2", "r4"], ["r1", "r3"]])
    write_order(run_dir, [f"r{i}" for i in range(5)])
    for shard, ids in ((1, ["r3", "r1"]), (0, ["r4", "r0", "r2"])):
        writer = writer_for(run_dir, shard)
        for row_id in ids:
            writer.append(row(row_id), {})
        merge([run_dir.path], tmp_path / "while.parquet")
        writer.publish()
    merge([run_dir.path], run_dir.results)
    assert ids_of(run_dir.results) == ids_of(tmp_path / "while.parquet") == [f"r{i}" for i in range(5)]


@pytest.mark.parametrize("order", [None, ["r1"]])
def test_rows_that_the_order_lacks_come_last(tmp_path: Path, order: list[str] | None) -> None:
    run_dir = make_run(tmp_path / "run", [["r0", "r1"]])
    run_dir.order_file.unlink()
    if order is not None:
        write_order(run_dir, order)
    writer = writer_for(run_dir)
    for row_id in ("r0", "r1"):
        writer.append(row(row_id), {})
    assert not merge([run_dir.path], run_dir.results).partial
    assert ids_of(run_dir.results) == (["r1", "r0"] if order else ["r0", "r1"])


def test_the_first_rows_that_are_missing_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_module, "BUCKET_ROWS", 3)
    ids = [f"r{i}" for i in range(10)]
    run_dir = make_run(tmp_path / "run", [ids])
    writer = writer_for(run_dir)
    writer.append(row("r4"), {})
    found = merge([run_dir.path], tmp_path / "out.parquet")
    assert (found.rows, found.expected, found.missing) == (1, 10, ("r0", "r1", "r2", "r3", "r5"))
    for row_id in ("r0", "r2", "r3", "r5", "r6", "r7", "r8"):
        writer.append(row(row_id), {})
    assert merge([run_dir.path], tmp_path / "out.parquet").missing == ("r1", "r9")


def test_the_next_attempt_takes_over_what_is_whole(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", [["r0", "r1", "r2"]])
    first = writer_for(run_dir)
    first.append(row("r1"), {})
    with run_dir.journal_file(0, 1).open("ab") as file:
        file.write(b"\0\0\0\x10torn")
    first.give_back(died=False)
    second = writer_for(run_dir)
    assert second.missing_in_order == ["r0", "r2"] and not second.deaths
    second.append(row("r0"), {})
    second.append(row("r2"), {})
    assert second.publish()
    merge([run_dir.path], run_dir.results)
    assert ids_of(run_dir.results) == ["r0", "r1", "r2"]


def test_a_journal_torn_at_any_byte_gives_every_row_once(tmp_path: Path) -> None:
    whole = make_run(tmp_path / "whole", [["r0", "r1"]])
    writer = writer_for(whole)
    for row_id in ("r0", "r1"):
        writer.note_started(row_id)
        writer.append(row(row_id), {"sampling": 1})
    content = whole.journal_file(0, 1).read_bytes()
    run_dir = make_run(tmp_path / "torn", [["r0", "r1"]])
    lease = claim(run_dir, 0)
    assert lease is not None
    lease.give_back(died=False)
    for cut in range(len(content) + 1):
        run_dir.journal_file(0, 1).write_bytes(content[:cut])
        second = writer_for(run_dir)
        for row_id in second.missing_in_order:
            second.append(row(row_id), {"sampling": 1})
        assert second.publish()
        (part,) = run_dir.parts.glob("*.parquet")
        assert sorted(ids_of(part)) == ["r0", "r1"], cut
        for path in (part, run_dir.done_file(0), run_dir.claim_file(0, 2)):
            path.unlink()


def test_a_claim_from_the_future_and_stale_files_block_nobody(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", [["r0"]])
    (run_dir.parts / ".000000.0001.parquet.abc.tmp").write_bytes(b"PAR1 half")
    assert set_mark(run_dir.claim_file(0, 1), {**this_process(), "host": "gone"})
    os.utime(run_dir.claim_file(0, 1), (time.time() + 3600,) * 2)
    writer = writer_for(run_dir)
    writer.append(row("r0"), {})
    assert writer.publish() and merge([run_dir.path], run_dir.results).rows == 1


def test_a_shard_counts_once_whoever_is_first(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", [["r0"]])
    sleeper = writer_for(run_dir)
    os.utime(run_dir.claim_file(0, 1), (time.time() - 2 * LEASE_S,) * 2)  # stopped for longer than its lease
    other = writer_for(run_dir)
    sleeper.lease.beat()
    assert sleeper.lease.lost
    sleeper.append(row("r0", text="by the first"), {})
    other.append(row("r0", text="by the second"), {})
    assert other.publish() and not sleeper.publish()
    merge([run_dir.path], run_dir.results)
    assert pq.read_table(run_dir.results)["text"].to_pylist() == ["by the second"]
    assert len(list(run_dir.parts.glob("*.parquet"))) == 1


def test_every_entry_is_read_as_what_it_is() -> None:
    line = to_json(row("r0"), COLUMNS)
    assert entries.read(entries.started("r0")) == Entry(started="r0")
    assert entries.read(entries.settings("s1", {"a": 1})) == Entry(settings={"s1": {"a": 1}})
    assert entries.read(entries.row(line)) == Entry(row=json.loads(line))
    assert entries.read(entries.tried(to_json(row("r0"), {}))) == Entry(tried=row("r0", manifest={}))
    written = [entries.started("r0"), entries.row(line), entries.tried(line), entries.settings("s1", {})]
    assert list(entries.rows(written)) == [line]


def test_tries_are_taken_over_once_by_whoever_comes_after(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", [["r0", "r1"]])
    again = [row("r0", attempt=n, status="engine_error", text=None, manifest={}) for n in (1, 2)]
    for attempt in range(3):
        writer = writer_for(run_dir)
        assert writer.tries.get("r0", []) == again[:attempt]
        assert not writer.deaths, "what came back killed nobody"
        if attempt < 2:
            writer.note_started("r0")
            writer.append_try(again[attempt], {"a": 1})
            assert writer.tries["r0"] == again[: attempt + 1]
            writer.give_back(died=True)
        if attempt == 1:
            run_dir.journal_file(0, 1).unlink()  # a lost host may forget it; the second has all of it
    recorded = writer.append(row("r0", attempt=3, resolved=None), {})
    assert [one.attempt for one in recorded.other_tries] == [1, 2] and not writer.tries
    writer.give_back(died=True)
    run_dir.journal_file(0, 2).unlink()
    last = writer_for(run_dir)
    assert not last.tries and last.missing_in_order == ["r1"] and last.statuses == {"ok": 1}
    last.append(row("r1", resolved=None), {})
    assert last.statuses == {"ok": 2} and last.publish()
    with pq.ParquetFile(next(run_dir.parts.glob("*.parquet"))) as part:
        assert part.read()["attempt"].to_pylist() == [3, 1]
        assert json.loads(part.metadata.metadata[RESOLVED_KEY.encode()]) == {"s1": {"a": 1}}


def test_rows_at_which_processes_die_are_counted(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", [["r0", "r1", "r2"]])
    for _ in range(2):
        writer = writer_for(run_dir)
        writer.note_started("r0")
        writer.note_started("r1")
        writer.append(row("r0"), {})
        writer.give_back(died=True)
    asked_to_stop = writer_for(run_dir)
    asked_to_stop.note_started("r1")
    asked_to_stop.give_back(died=False)
    assert writer_for(run_dir).deaths == {"r1": 2}


def test_a_column_that_the_manifest_gained_is_null_in_old_parts(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", [["r0"], ["r1"]])
    old = writer_for(run_dir, 0)
    old.append(row("r0"), {})
    old.publish()
    columns = {**COLUMNS, "extra": "json"}
    run = run_dir.read_run()
    assert run is not None
    run_dir.update_run({**run, "manifest": {"rows": 2, "columns": columns}})
    new = writer_for(run_dir, 1, columns)
    new.append(row("r1", manifest={"extra": [1]}), {})
    new.publish()
    merge([run_dir.path], run_dir.results)
    assert pq.read_table(run_dir.results)["extra"].to_pylist() == [None, "[1]"]


def test_merging_several_runs(tmp_path: Path) -> None:
    for name, row_id in (("one", "r0"), ("two", "r1")):
        writer = writer_for(make_run(tmp_path / name, [[row_id]]))
        writer.append(row(row_id), {})
        writer.publish()
    assert merge([tmp_path / "one", tmp_path / "two"], tmp_path / "out.parquet").rows == 2
    with pytest.raises(RecipeError, match="'r0'"):
        merge([tmp_path / "one", tmp_path / "one"], tmp_path / "out.parquet")
    with pytest.raises(RecipeError, match="not a run directory"):
        merge([tmp_path], tmp_path / "out.parquet")
    make_run(tmp_path / "other", [["r2"]], {**COLUMNS, "extra": "json"})
    with pytest.raises(RecipeError, match=r"other has other columns than \S+one;"):
        merge([tmp_path / "one", tmp_path / "other"], tmp_path / "out.parquet")


def test_status_counts_what_is_recorded(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", [["r0", "r1"], ["r2"], ["r3"]])
    done = writer_for(run_dir, 1)
    done.append(row("r2", status="media_error"), {})
    done.publish()
    at_work = writer_for(run_dir, 0)
    at_work.append(row("r0"), {})
    status = read_status(run_dir.path)
    assert (status.rows, status.recorded, status.shards, status.shards_done) == (4, 2, 3, 1)
    assert status.statuses == {"ok": 1, "media_error": 1}
    (worker,) = status.workers
    assert worker.pid == os.getpid() and worker.shards == (0,)
    at_work.give_back(died=False)
    assert read_status(run_dir.path).workers == ()


def test_a_grown_plan_keeps_its_shards(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", [["r0"], ["r1"]])
    known = read_shards(run_dir)
    add_shards(run_dir, [[("r2", "sha2")]], [5], known)
    grown = read_shards(run_dir)
    assert grown.ids == {0: ("r0",), 1: ("r1",), 2: ("r2",)} and grown.sha["r2"] == "sha2" and grown.rows == 3
    assert grown.cost == {0: 9, 1: 9, 2: 5}


def test_of_two_processes_that_plan_at_once_one_plans(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path / "run")
    run_dir.create()
    nothing = read_shards(run_dir)
    add_shards(run_dir, [[("r0", "sha0")]], [5], nothing)
    add_shards(run_dir, [[("r0", "sha0"), ("r1", "sha1")]], [7], nothing)
    found = read_shards(run_dir)
    assert found.ids == {0: ("r0",)} and len(list(run_dir.plans.glob("*.parquet"))) == 1
    add_shards(run_dir, [[("r1", "sha1")]], [7], found)
    assert read_shards(run_dir).ids == {0: ("r0",), 1: ("r1",)}


def test_a_plan_that_was_never_finished_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_dir = RunDir(tmp_path / "run")
    run_dir.create()
    (run_dir.plans / "000000").touch()  # by a process that was killed, where nothing can appear whole
    monkeypatch.setattr(disk, "SEEN_LATE_S", 0.2)
    run_dir.run_file.write_text("{")
    with pytest.raises(RecipeError, match=r"(?s)run.json: not whole.*Delete it"):
        run_dir.write_run({}, "")
    with pytest.raises(RecipeError, match=r"(?s)000000: not whole.*Delete it"):
        add_shards(run_dir, [[("r0", "sha0")]], [5], read_shards(run_dir))


def test_fresh_forgets_the_run_and_nothing_else(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", [["r0"]])
    writer_for(run_dir).append(row("r0"), {})
    (run_dir.path / "notes.txt").write_text("mine")
    run_dir.clear()
    run_dir.create()
    assert run_dir.read_run() is None and read_shards(run_dir).rows == 0 and (run_dir.path / "notes.txt").exists()


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(RecipeError, match="not a run directory"):
        RunDir(tmp_path).create()


def test_parts_from_before_a_column_of_ours_existed_have_none_of_it(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path / "run", [["r0"], ["r1"]])
    for shard, row_id in enumerate(["r0", "r1"]):
        writer = writer_for(run_dir, shard)
        writer.append(row(row_id, reply=ReplyRecord(["empty"])), {})
        writer.publish()
    old = run_dir.parts / read_mark(run_dir.done_file(0))["part"]  # type: ignore[index]
    pq.write_table(pq.read_table(old).drop_columns(["reply", "other_tries", "images"]), old)
    merged = merge([run_dir.path], tmp_path / "all.parquet")
    before, now = pq.read_table(merged.path).to_pylist()
    assert not merged.partial and before["text"] == "text r0" and now["reply"] == {"flags": ["empty"], "parse": None}
    assert before["reply"] is before["other_tries"] is before["images"] is None
    assert pq.read_schema(merged.path).equals(output_schema(COLUMNS))
