"""Manifests of every format and every fault that a manifest can have."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidpipe.errors import ManifestError
from vidpipe.manifest.row import BadRow, Row
from vidpipe.manifest.scan import Manifest, scan_manifest

GOOD = '{"id": "q1", "video": "a.mp4", "question": "What?"}\n'


def scan(path: Path, content: bytes | str) -> Manifest:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return scan_manifest(path, recipe_has_prompt=False)


def kinds(manifest: Manifest) -> list[tuple[str, int | None]]:
    return [(fault.kind, fault.line) for fault in manifest.faults]


def ids(manifest: Manifest) -> list[str]:
    return [row.id for row in manifest.rows]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (GOOD + "\xe9".encode("latin-1").decode("latin-1") + "\n", [("syntax", 2)]),
        (GOOD + '{"id": "q2", "video"', [("syntax", 2)]),
        (GOOD + '{"id": "q2",}\n', [("syntax", 2)]),
        (GOOD + "[1]\n", [("syntax", 2)]),
        (GOOD + '{"id": "q2", "video": "b", "question": NaN}\n', [("syntax", 2)]),
        (GOOD + "[" * 100_000 + "\n", [("syntax", 2)]),
        (GOOD + '{"id": 1, "id": 2, "video": "b", "question": "?"}\n', [("duplicate_key", 2)]),
        (GOOD + GOOD, [("duplicate_id", 2)]),
        (
            '{"id": 1, "video": "a", "question": "?"}\n{"id": "1", "video": "a", "question": "?"}\n',
            [("duplicate_id", 2)],
        ),
    ],
)
def test_jsonl_faults_refuse_the_file(tmp_path: Path, content: str, expected: list) -> None:
    manifest = scan(tmp_path / "m.jsonl", content)
    assert kinds(manifest) == expected
    with pytest.raises(ManifestError) as caught:
        manifest.raise_if_refused(tmp_path / "m.jsonl")
    assert caught.value.kind == expected[0][0] and f"line {expected[0][1]}" in str(caught.value)


def test_bytes_that_are_not_utf8_are_named(tmp_path: Path) -> None:
    assert kinds(scan(tmp_path / "m.jsonl", GOOD.encode() + b'{"id": "caf\xe9"}\n')) == [("encoding", 2)]
    assert kinds(scan(tmp_path / "m.csv", b"id,video,question\nq1,a,caf\xe9\n")) == [("encoding", 2)]


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ({"id": "x", "video": "a"}, "missing_field"),
        ({"id": "x", "question": "?"}, "missing_field"),
        ({"video": "a", "question": "?"}, "bad_id"),
        ({"id": True, "video": "a", "question": "?"}, "bad_id"),
        ({"id": "x", "video": 3, "question": "?"}, "bad_value"),
        ({"id": "x", "video": "a", "question": ["?"]}, "bad_value"),
        ({"id": "x", "video": "a", "question": "\ud83d"}, "bad_value"),
        ({"id": "x", "video": "a", "question": "?", "options": "A. yes"}, "bad_options"),
        ({"id": "x", "video": "a", "question": "?", "clip_start": 3, "clip_end": 2}, "bad_window"),
        ({"id": "x", "video": "a", "question": "?", "clip_start": -1}, "bad_window"),
        ({"id": "x", "video": "a", "question": "?", "clip_end": "0:02"}, "bad_window"),
        ({"id": "x", "video": "a", "question": "?", "sampling": 3}, "bad_value"),
        ({"id": "x", "video": "a", "question": "?", "sampling": {"fps": 1}, "sampling.fps": 1}, "bad_value"),
        ({"id": "x", "video": "a", "question": "?", "timestamps_from": "moon"}, "bad_value"),
    ],
)
def test_row_faults_cost_the_row(tmp_path: Path, row: dict, kind: str) -> None:
    manifest = scan(tmp_path / "m.jsonl", GOOD + json.dumps(row) + "\n")
    assert kinds(manifest) == [(kind, 2)]
    manifest.raise_if_refused(tmp_path / "m.jsonl")
    assert isinstance(manifest.rows[0], Row) and isinstance(manifest.rows[1], BadRow)


def test_lines_are_split_at_newline_bytes_only(tmp_path: Path) -> None:
    rows = [{"id": f"{i}", "video": "a", "question": "one\u2028two\x0bthree\x85"} for i in range(2)]
    text = "\ufeff" + "\r\n\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    manifest = scan(tmp_path / "m.jsonl", text)
    assert kinds(manifest) == [] and ids(manifest) == ["0", "1"]
    assert manifest.rows[1].values["question"] == rows[1]["question"]


def test_numbers_keep_their_value(tmp_path: Path) -> None:
    lines = [f'{{"id": {n}, "video": "a", "question": "?"}}\n' for n in (9007199254740993, 10**29)]
    assert ids(scan(tmp_path / "m.jsonl", "".join(lines))) == ["9007199254740993", str(10**29)]


def test_ids_are_not_normalised(tmp_path: Path) -> None:
    written = ["Clip", "clip", "clip ", "\u00e9", "e\u0301", "a\0b"]
    lines = [json.dumps({"id": name, "video": "a", "question": "?"}) + "\n" for name in written]
    manifest = scan(tmp_path / "m.jsonl", "".join(lines))
    assert kinds(manifest) == [] and ids(manifest) == written


def test_csv_cells_stay_text(tmp_path: Path) -> None:
    content = "\ufeffid,video,question,answer,options,empty\r\n"
    content += '1.10,a.mp4,N/A,007,"[""A"", ""B""]",\r\n2024-01-02,b.mp4,"two\nlines, ""quoted""",nan,,""""""\r\n'
    manifest = scan(tmp_path / "m.csv", content)
    assert kinds(manifest) == []
    first, second = manifest.rows
    assert first.id == "1.10" and first.values["answer"] == "007" and first.values["empty"] is None
    assert isinstance(first, Row) and first.options == ("A", "B") and first.question == "N/A"
    assert second.id == "2024-01-02" and second.values["question"] == 'two\nlines, "quoted"'
    assert second.values["empty"] == "" and second.line == 3
    assert set(manifest.columns.values()) == {"text"}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("id,video,question\nq1,a\nq2,a,?,x\n", [("ragged_row", 2), ("ragged_row", 3)]),
        ("id,question,question\n", [("duplicate_column", 1)]),
        ("id,question\nq1,?\n", [("missing_column", 1)]),
        ("id,video\nq1,a\n", [("missing_column", 1)]),
        ("", [("missing_column", 1)]),
        ('id,video,question\nq1,a,"?\n', [("syntax", 2)]),
        ("id,video,question,options\nq1,a,?,A. yes\n", [("syntax", 2)]),
    ],
)
def test_csv_faults(tmp_path: Path, content: str, expected: list) -> None:
    manifest = scan(tmp_path / "m.csv", content)
    named = [(kind, line) for kind, line in kinds(manifest) if kind != "missing_field"]
    assert named == expected


def test_header_only_is_an_empty_manifest(tmp_path: Path) -> None:
    manifest = scan(tmp_path / "m.tsv", "id\tvideo\tquestion\n")
    assert kinds(manifest) == [] and manifest.rows == [] and list(manifest.columns) == ["id", "video", "question"]


def test_parquet(tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": pa.array([1, 2, None], pa.int64()),
            "video": pa.array(["a", "b", "c"]).dictionary_encode(),
            "question": pa.array(["?", "?", "?"], pa.large_string()),
            "answer": pa.array([[1.5], None, []], pa.list_(pa.float64())),
        }
    )
    pq.write_table(table, tmp_path / "m.parquet")
    manifest = scan_manifest(tmp_path / "m.parquet", recipe_has_prompt=False)
    assert ids(manifest)[:2] == ["1", "2"] and kinds(manifest) == [("bad_id", 3)]
    assert manifest.columns["answer"] == "json" and manifest.rows[0].values["answer"] == [1.5]
    assert kinds(scan(tmp_path / "bad.parquet", "PAR1")) == [("syntax", None)]


def test_folder_and_single_clip(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("b.mp4", "sub/a.MKV", "notes.txt"):
        (tmp_path / name).touch()
    manifest = scan_manifest(tmp_path, recipe_has_prompt=True)
    assert ids(manifest) == ["b.mp4", "sub/a.MKV"] and kinds(manifest) == []
    assert ids(scan_manifest(tmp_path / "b.mp4", recipe_has_prompt=True)) == ["b.mp4"]
    (tmp_path / "empty").mkdir()
    assert kinds(scan_manifest(tmp_path / "empty", recipe_has_prompt=True)) == [("not_found", None)]


def test_file_names_that_are_not_utf8_become_uris(tmp_path: Path) -> None:
    raw = bytes(tmp_path) + b"/caf\xe9.mp4"
    open(raw, "w").close()  # noqa: PTH123 - a bytes path
    (row,) = scan_manifest(tmp_path, recipe_has_prompt=True).rows
    assert row.id == "caf%E9.mp4" and row.values["video"].startswith("file:///")
    row.values["video"].encode("utf-8")


def test_missing_and_unknown_files(tmp_path: Path) -> None:
    assert kinds(scan_manifest(tmp_path / "none.jsonl", recipe_has_prompt=False)) == [("not_found", None)]
    assert kinds(scan(tmp_path / "rows.xlsx", "")) == [("syntax", None)]


@given(st.binary(max_size=200))
def test_no_bytes_raise(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    for suffix in (".jsonl", ".csv", ".parquet"):
        scan(folder / f"m{suffix}", content)


def test_parquet_that_breaks_inside(tmp_path: Path) -> None:
    path = tmp_path / "m.parquet"
    table = pa.table({"id": [f"q{i}" for i in range(5000)], "video": ["a"] * 5000, "question": ["?"] * 5000})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[40:400] = bytes(360)
    assert [kind for kind, _ in kinds(scan(path, bytes(content)))] == ["syntax"]
    twice = pa.map_(pa.string(), pa.string())
    pq.write_table(pa.table({"id": ["q"], "meta": pa.array([[("a", "1"), ("a", "2")]], twice)}), path)
    assert [kind for kind, _ in kinds(scan_manifest(path, recipe_has_prompt=True))] == ["duplicate_key"]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("m.jsonl", b'[{"id": 1},\n{"id": 2}]', "jq -c"),
        ("m.jsonl", b'{\n"id": 1\n}', "jq -c"),
        ("m.jsonl", '{"id": 1}'.encode("utf-16"), "iconv"),
        ("m.jsonl", b"\x1f\x8b\x08\x00\xff\n\xff", "Unpack"),
        ("m.csv", "id,video\n".encode("utf-16"), "iconv"),
        ("m.csv", b"ID,video,question\n1,a,?\n", "Rename 'ID' to 'id'"),
        ("m.csv", b"id, video,question\n1,a,?\n", "Rename ' video' to 'video'"),
        ("m.csv", b"id;video;question\n1;a;?\n", "divided by semicolons"),
        ("m.csv", b"id,video,question\r1,a,?\r", "carriage return"),
        ("m.csv", b'id,video,question\n1,a,"?\n', "not closed"),
        ("m.csv", b"id,video,question,options\n1,a,?,['x']\n", "double quotes"),
        ("m.csv", b'id,video,question,meta\n1,a,?,"{""a"": 1, ""a"": 2}"\n', "must hold JSON"),
        ("m.json", b"[]", "jq -c"),
        ("m.xlsx", b"PK", "as CSV"),
    ],
)
def test_files_of_other_forms_are_named_with_the_way_out(tmp_path: Path, name: str, content: bytes, told: str) -> None:
    manifest = scan(tmp_path / name, content)
    assert manifest.refused and told in manifest.faults[0].message
    assert len({fault.kind for fault in manifest.faults}) == 1, "nothing that only follows from it"


def test_parquet_times_of_nanoseconds_keep_their_digits(tmp_path: Path) -> None:
    times = pa.array([1, None], pa.timestamp("ns"))
    lengths = pa.array([7, None], pa.duration("ns"))
    named = {"id": ["a", "b"], "video": ["v", "v"], "question": ["?", "?"]}
    pq.write_table(pa.table({**named, "t": times, "d": lengths}), tmp_path / "m.parquet")
    first, second = scan_manifest(tmp_path / "m.parquet", recipe_has_prompt=False).rows
    assert first.values["t"] == "1970-01-01 00:00:00.000000001" and first.values["d"] == 7
    assert second.values["t"] is second.values["d"] is None
