"""Rows into a run directory and out of it again: schema, segments, merge."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from vidpipe.errors import RecipeError
from vidpipe.record import writer as writer_module
from vidpipe.record.merge import merge
from vidpipe.record.row import FramesRecord, MediaRecord, OutputRow, ResolvedRecord, VisionTokens
from vidpipe.record.run_dir import RunDir
from vidpipe.record.schema import KIND_KEY, output_schema
from vidpipe.record.writer import RESOLVED_KEY, RowWriter, recorded_statuses

COLUMNS = {"id": "text", "video": "text", "answer": "json", "frames": "json", "text": "text"}


def row(index: int, **values: object) -> OutputRow:
    fields = {
        "id": f"r{index}",
        "clip_id": "a.mp4",
        "status": "ok",
        "text": "yes",
        "media": MediaRecord("ok"),
        "frames": FramesRecord(2, [0, 5], [0.0, 0.5], [64, 48], "abc"),
        "vision_tokens": VisionTokens(128, 128),
        "resolved": ResolvedRecord("s1", "m", "fake 1", "0"),
        "manifest": {"id": f"r{index}", "video": "a.mp4", "answer": index},
        "manifest_index": index,
    }
    return OutputRow(**{**fields, **values})  # type: ignore[arg-type]


def open_run(path: Path, rows: int = 3, columns: dict | None = None) -> tuple[RunDir, RowWriter]:
    run_dir = RunDir(path)
    run_dir.open(fresh=False)
    columns = columns or COLUMNS
    run = {"manifest": {"rows": rows, "columns": columns}, "recipe": {}}
    run_dir.write_run(run, "manifest: x\n")
    return run_dir, RowWriter(run_dir, columns, run, sync_s=5)  # type: ignore[arg-type]


def test_one_row_there_and_back(tmp_path: Path) -> None:
    run_dir, writer = open_run(tmp_path / "run")
    written = row(0, manifest={"video": "a.mp4", "answer": {"x": [1, None]}, "frames": "own", "text": "own text"})
    writer.append(written, {"sampling": {"fps": 2}})
    writer.close()
    merged = merge([run_dir.path], tmp_path / "out.parquet")
    table = pq.read_table(tmp_path / "out.parquet")
    (read,) = table.to_pylist()
    assert merged.partial and merged.rows == 1 and merged.expected == 3
    assert read["frames"] == {"count": 2, "indices": [0, 5], "times_s": [0.0, 0.5], "size_wh": [64, 48], "sha": "abc"}
    assert json.loads(read["answer"]) == {"x": [1, None]}
    assert read["text"] == "yes" and read["manifest.text"] == "own text" and read["manifest.frames"] == '"own"'
    assert table.schema.field("answer").metadata == {KIND_KEY: b"json"}
    assert json.loads(table.schema.metadata[RESOLVED_KEY.encode()]) == {"s1": {"sampling": {"fps": 2}}}
    assert table.schema.metadata[b"vidpipe.partial"] == b"true"


def test_texts_that_utf8_cannot_hold_are_written(tmp_path: Path) -> None:
    run_dir, writer = open_run(tmp_path / "run")
    texts = ["half \ud83d pair", "nul \0", "", None, "x" * 100_000]
    for index, text in enumerate(texts):
        writer.append(row(index, text=text, manifest={"answer": "\ud83d", "video": "\ud83d"}), {})
    writer.close()
    merge([run_dir.path], run_dir.results)
    rows = pq.read_table(run_dir.results).to_pylist()
    assert [r["text"] for r in rows] == ["half \ufffd pair", "nul \0", "", None, "x" * 100_000]
    assert json.loads(rows[0]["answer"]) == "\ud83d" and rows[0]["video"] == "\ufffd"


def test_no_row_is_an_empty_file_of_the_same_schema(tmp_path: Path) -> None:
    run_dir, writer = open_run(tmp_path / "run", rows=0)
    writer.close()
    assert not merge([run_dir.path], run_dir.results).partial
    names = [name for name in output_schema(COLUMNS).names if name != "manifest_index"]  # type: ignore[arg-type]
    assert pq.read_table(run_dir.results).schema.names == names


def test_merged_rows_stand_in_manifest_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "SEGMENT_ROWS", 2)
    run_dir, writer = open_run(tmp_path / "run", rows=5)
    for index in (4, 2, 0, 3, 1):
        writer.append(row(index), {})
    assert len(run_dir.parts()) == 2 and len(run_dir.journals()) == 1, "two full segments and one open"
    assert dict(recorded_statuses(run_dir)) == {f"r{i}": "ok" for i in range(5)}
    merge([run_dir.path], tmp_path / "while.parquet")
    writer.close()
    merge([run_dir.path], run_dir.results)
    for path in (tmp_path / "while.parquet", run_dir.results):
        assert pq.read_table(path)["id"].to_pylist() == [f"r{i}" for i in range(5)]


def test_a_kill_between_part_and_journal_counts_no_row_twice(tmp_path: Path) -> None:
    run_dir, writer = open_run(tmp_path / "run")
    writer.append(row(0), {})
    (journal,) = run_dir.journals()
    content = journal.read_bytes()
    writer.close()
    journal.write_bytes(content)  # as if the process had died before it could remove it
    assert [name for name, _ in recorded_statuses(run_dir)] == ["r0"]
    run_dir.close()
    _, again = open_run(tmp_path / "run")
    again.append(row(1), {})
    again.close()
    assert merge([run_dir.path], run_dir.results).rows == 2


def test_a_journal_left_behind_is_sealed_by_the_next_writer(tmp_path: Path) -> None:
    run_dir, writer = open_run(tmp_path / "run")
    writer.append(row(0), {})
    with run_dir.journals()[0].open("ab") as file:
        file.write(b"\0\0\0\x10torn")
    run_dir.close()  # the first writer is never closed: it was killed
    again, next_writer = open_run(tmp_path / "run")
    assert again.journals() == [] and len(again.parts()) == 1
    next_writer.append(row(1), {})
    next_writer.close()
    assert dict(recorded_statuses(again)) == {"r0": "ok", "r1": "ok"}


def test_a_column_that_the_manifest_gained_is_null_in_old_parts(tmp_path: Path) -> None:
    run_dir, writer = open_run(tmp_path / "run")
    writer.append(row(0), {})
    writer.close()
    run_dir.close()
    run_dir, writer = open_run(tmp_path / "run", columns={**COLUMNS, "extra": "json"})
    writer.append(row(1, manifest={"extra": [1]}), {})
    writer.close()
    merge([run_dir.path], run_dir.results)
    assert pq.read_table(run_dir.results)["extra"].to_pylist() == [None, "[1]"]


def test_merging_several_runs(tmp_path: Path) -> None:
    for name, index in (("one", 0), ("two", 1)):
        _, writer = open_run(tmp_path / name, rows=1)
        writer.append(row(index), {})
        writer.close()
    assert merge([tmp_path / "one", tmp_path / "two"], tmp_path / "out.parquet").rows == 2
    with pytest.raises(RecipeError, match="'r0'"):
        merge([tmp_path / "one", tmp_path / "one"], tmp_path / "out.parquet")
    with pytest.raises(RecipeError, match="not a run directory"):
        merge([tmp_path], tmp_path / "out.parquet")


def test_a_directory_has_one_process_at_a_time(tmp_path: Path) -> None:
    run_dir, _ = open_run(tmp_path / "run")
    with pytest.raises(RecipeError, match="another vidpipe"):
        RunDir(tmp_path / "run").open(fresh=False)
    run_dir.close()
    RunDir(tmp_path / "run").open(fresh=False)


def test_fresh_forgets_the_run_and_nothing_else(tmp_path: Path) -> None:
    run_dir, writer = open_run(tmp_path / "run")
    writer.append(row(0), {})
    writer.close()
    (run_dir.path / "notes.txt").write_text("mine")
    run_dir.close()
    again = RunDir(tmp_path / "run")
    again.open(fresh=True)
    assert again.read_run() is None and again.parts() == [] and (run_dir.path / "notes.txt").exists()


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(RecipeError, match="not a run directory"):
        RunDir(tmp_path).open(fresh=True)
