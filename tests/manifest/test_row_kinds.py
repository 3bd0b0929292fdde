"""The columns that name media and chats: what they become, and what is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vidpipe.manifest.row import BadRow, Medium, Record, Row
from vidpipe.manifest.rows import to_row
from vidpipe.manifest.scan import scan_manifest

VIDEO, IMAGE, TEXT = {"type": "video"}, {"type": "image"}, {"type": "text", "text": "What?"}


def read(**values: Any) -> Row | BadRow:
    return to_row(Record(1, {"id": "r", "question": "?", **values}), 0, recipe_has_prompt=False)


def good(**values: Any) -> Row:
    row = read(**values)
    assert isinstance(row, Row), row
    return row


@pytest.mark.parametrize(
    ("values", "media"),
    [
        ({"video": "a"}, [Medium("video", "a")]),
        ({"video": ["a", "b"]}, [Medium("video", "a"), Medium("video", "b")]),
        ({"video": []}, []),
        ({"images": ["i", "j"], "video": "a"}, [Medium("image", "i"), Medium("image", "j"), Medium("video", "a")]),
        ({"images": "i"}, [Medium("image", "i")]),
        ({"frames": "f", "frames_fps": 3}, [Medium("frames", "f", fps=3.0)]),
        ({"video": "f", "frames_fps": "3"}, [Medium("frames", "f", fps=3.0)]),
        ({"frames": ["1", "2"], "frames_fps": 3}, [Medium("frames", "1", pictures=("1", "2"), fps=3.0)]),
        ({"frames": "f", "frames_fps": 3, "frames_start_index": 1}, [Medium("frames", "f", fps=3.0, first_number=1)]),
        ({"video": ["a", "b"], "clip_start": 1}, [Medium("video", "a", 1.0), Medium("video", "b")]),
        ({"video": ["a", "b"], "clips": [None, {"end": 2}]}, [Medium("video", "a"), Medium("video", "b", None, 2.0)]),
        ({"messages": [{"role": "user", "content": "Hi"}], "question": None}, []),
    ],
)
def test_media_of_a_row(values: dict[str, Any], media: list[Medium]) -> None:
    assert good(**values).media == tuple(media)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({}, "missing_field"),
        ({"video": None}, "missing_field"),
        ({"video": ""}, "missing_field"),
        ({"video": [""]}, "bad_value"),
        ({"video": {"path": "a"}}, "bad_value"),
        ({"video": ["a", 3]}, "bad_value"),
        ({"images": ["\ud83d"]}, "bad_value"),
        ({"video": "a", "frames": "f", "frames_fps": 3}, "bad_value"),
        ({"frames": "f"}, "bad_value"),
        ({"frames": "f", "frames_fps": 0}, "bad_value"),
        ({"frames": "f", "frames_fps": True}, "bad_value"),
        ({"frames": "f", "frames_fps": 3, "frames_start_index": 1.5}, "bad_value"),
        ({"video": [], "clip_start": 1}, "bad_window"),
        ({"video": "a", "clips": [{"start": 1}], "clip_end": 3}, "bad_window"),
        ({"video": ["a", "b"], "clips": [{"start": 1}]}, "bad_window"),
        ({"video": "a", "clips": [{"from": 1}]}, "bad_window"),
        ({"video": "a", "clips": [{"start": 2, "end": 1}]}, "bad_window"),
        ({"video": "a", "start": 1, "clip_start": 1}, "bad_window"),
        ({"video": "a", "option_style": "stars"}, "bad_value"),
        ({"video": "a", "option_style": ["dot"]}, "bad_value"),
        ({"video": "a", "prefill": 3}, "bad_value"),
        ({"video": "a", "set_id": "s"}, "missing_field"),
        ({"video": "a", "set_index": 1}, "missing_field"),
        ({"video": "a", "set_id": "s", "set_index": "first"}, "bad_value"),
        ({"video": ["a", "b"], "subtitles": "s.srt"}, "bad_value"),
        ({"video": [], "images": "i", "subtitles": "s.srt"}, "bad_value"),
        ({"video": "a", "subtitles": 3}, "bad_value"),
        ({"video": "a", "subtitles": "s.srt", "subtitle_offset": "soon"}, "bad_value"),
    ],
)
def test_faults_cost_the_row(values: dict[str, Any], kind: str) -> None:
    row = read(**values)
    assert isinstance(row, BadRow) and row.fault.kind == kind, row


def test_texts_of_a_row_are_kept_and_an_empty_prefill_is_none() -> None:
    row = good(video="a", system="Be brief.", prefill="It is", prompt="What?", clip_id="c", group_id="g")
    assert (row.system, row.prefill, row.text, row.clip_id) == ("Be brief.", "It is", "What?", "c")
    assert good(video="a", prefill="").prefill is None
    subtitled = good(video="a", subtitles="s.srt", subtitle_offset="-1.5", set_id="s", set_index="0", group_id="g")
    assert (subtitled.subtitles, subtitled.subtitle_offset_s) == (("s.srt",), -1.5)
    assert (subtitled.place_in_set, subtitled.clip_id, subtitled.timestamps_from) == (("s", 0), "g", "clip")
    assert good(video="a", timestamps_from="video", option_style="dot").timestamps_from == "video"


@pytest.mark.parametrize(
    "secret", ["https://ann:pw@host/a.mp4", "https://!ann@host/a.mp4", "https://host/a.mp4?token=x"]
)
@pytest.mark.parametrize("rare", [{}, {"system": "Be brief."}], ids=["simple", "rare"])
def test_an_id_with_a_secret_is_refused_and_not_shown(secret: str, rare: dict[str, Any]) -> None:
    row = read(id=secret, video="a", **rare)
    assert isinstance(row, BadRow) and row.fault.kind == "bad_id"
    assert "password" in row.fault.message and secret not in row.fault.message and row.id == "(line 1)"


def test_a_chat_is_taken_as_written() -> None:
    turns = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [TEXT, IMAGE, {"type": "video", "text": None}]},
        {"role": "assistant", "content": "It is "},
    ]
    row = good(video="a", images=["i"], messages=turns)
    assert row.messages == (turns[0], {"role": "user", "content": [TEXT, IMAGE, VIDEO]}, turns[2])


@pytest.mark.parametrize(
    "messages",
    [
        "Hi",
        [],
        ["Hi"],
        [{"role": "user"}],
        [{"role": "tool", "content": "Hi"}],
        [{"role": "user", "content": None}],
        [{"role": "user", "content": [TEXT]}],
        [{"role": "user", "content": [VIDEO, VIDEO, TEXT]}],
        [{"role": "user", "content": [VIDEO, IMAGE, TEXT]}],
        [{"role": "user", "content": [VIDEO, {"type": "video_url", "video_url": {"url": "x"}}]}],
        [{"role": "user", "content": [{"type": "video", "video": "other.mp4"}]}],
        [{"role": "user", "content": [VIDEO, {"type": "text", "text": 3}]}],
        [{"role": "user", "content": [VIDEO]}, {"role": "system", "content": "Be brief."}],
        [{"role": "assistant", "content": [VIDEO, TEXT]}],
    ],
)
def test_chats_that_cannot_be_shown(messages: Any) -> None:
    row = read(video="a", messages=messages)
    assert isinstance(row, BadRow) and row.fault.kind == "bad_value"


@pytest.mark.parametrize("other", ["prompt", "system", "prefill"])
def test_a_chat_excludes_what_it_says_itself(other: str) -> None:
    turns = [{"role": "user", "content": [VIDEO, TEXT]}]
    row = read(video="a", messages=turns, **{other: "x"})
    assert isinstance(row, BadRow) and other in row.fault.message
    assert isinstance(read(video="a", messages=turns, question="kept for the report"), Row)


def test_csv_cells_of_the_new_columns(tmp_path: Path) -> None:
    chat = json.dumps([{"role": "user", "content": "Hi"}]).replace('"', '""')
    lines = [
        "id,video,images,frames_fps,clips,messages,question",
        '1,"[""a"", ""b""]",,,"[null, {""start"": 1}]",,?',
        '2,[],"[""i""]",,,,?',
        "3,f,,3,,,?",
        f'4,[],,,,"{chat}",',
        "5,,,,,,?",
    ]
    (tmp_path / "m.csv").write_text("\n".join(lines))
    manifest = scan_manifest(tmp_path / "m.csv", recipe_has_prompt=False)
    assert [(fault.kind, fault.id) for fault in manifest.faults] == [("missing_field", "5")]
    rows = [row for row in manifest.rows if isinstance(row, Row)]
    assert [len(row.media) for row in rows] == [2, 1, 1, 0]
    assert rows[0].media[1].start_s == 1.0 and rows[2].media[0].fps == 3.0 and rows[3].messages is not None


def test_parquet_lists_and_structs(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "What?"}, {"type": "video", "text": None}]
    table = pa.table(
        {
            "id": ["1", "2"],
            "video": pa.array([["a"], []]),
            "clips": [[{"start": 1.0, "end": None}], None],
            "messages": [[{"role": "user", "content": parts}], [{"role": "user", "content": parts[:1]}]],
        }
    )
    pq.write_table(table, tmp_path / "m.parquet")
    manifest = scan_manifest(tmp_path / "m.parquet", recipe_has_prompt=False)
    assert manifest.faults == []
    first, second = manifest.rows
    assert isinstance(first, Row) and first.media == (Medium("video", "a", 1.0),) and first.messages is not None
    assert first.messages[0]["content"] == [TEXT, VIDEO]
    assert isinstance(second, Row) and second.media == ()


def test_a_set_has_one_row_a_place(tmp_path: Path) -> None:
    places = [("s", 1), ("s", 2), ("t", 1), ("s", 2)]
    rows = [
        {"id": f"{n}", "video": "a", "question": "?", "set_id": name, "set_index": index}
        for n, (name, index) in enumerate(places)
    ]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    manifest = scan_manifest(tmp_path / "m.jsonl", recipe_has_prompt=False)
    assert [(fault.kind, fault.line) for fault in manifest.faults] == [("bad_value", 4)]
    assert "line 2" in manifest.faults[0].message
    assert [isinstance(row, BadRow) for row in manifest.rows] == [False, False, False, True]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_column_of_whole_numbers_may_have_gaps(tmp_path: Path, suffix: str) -> None:
    """Tables then hold 8.0 for 8."""
    path, columns = tmp_path / f"rows{suffix}", {"id": ["a", "b"], "video": ["a.mp4"] * 2, "question": ["?"] * 2}
    if suffix == ".csv":
        path.write_text("id,video,question,sampling.max_frames,generation.seed\na,a.mp4,?,8.0,\nb,a.mp4,?,,3.0\n")
    else:
        pq.write_table(pa.table({**columns, "sampling.max_frames": [8.0, None], "generation.seed": [None, 3.0]}), path)
    first, second = scan_manifest(path, recipe_has_prompt=False).rows
    assert isinstance(first, Row) and isinstance(second, Row)
    assert (repr(first.sampling), repr(second.generation)) == ("{'max_frames': 8}", "{'seed': 3}")
    odd = to_row(
        Record(1, {"id": 1, "video": "a.mp4", "question": "?", "sampling": {"fps": 0.5, "x": 1e300}}),
        0,
        recipe_has_prompt=False,
    )
    assert isinstance(odd, Row) and odd.sampling == {"fps": 0.5, "x": 1e300}
