"""`vidpipe check` on manifests of any length."""

from __future__ import annotations

import json
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from vidpipe.errors import RecipeError
from vidpipe.job.check import Checked, check_rows
from vidpipe.job.prospect import read_named
from vidpipe.manifest.scan import Manifest
from vidpipe.recipe.load import load_recipe


def checked(recipe: Path, rows: int) -> tuple[Checked, int]:
    """The result, and the most bytes in use."""
    manifest = recipe.parent / "rows.jsonl"
    with manifest.open("w") as file:
        for i in range(rows):
            file.write(json.dumps({"id": f"q{i}", "video": "a.mp4", "question": "?" * 1000}) + "\n")
    named = read_named(load_recipe(recipe, []))
    tracemalloc.start()
    found = check_rows(named)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found, peak


def test_memory_is_that_of_the_ids(make_run: Callable[..., Path]) -> None:
    recipe = make_run()
    few, many = checked(recipe, 100), checked(recipe, 2100)
    assert many[0] == Checked(2100, [], False)
    assert (many[1] - few[1]) / 2000 < 500, "bytes a row; its question alone has 1000"


def test_rows_whose_texts_alone_are_too_long_are_named(make_run: Callable[..., Path]) -> None:
    rows = [{"id": f"q{n}", "video": "a.mp4", "question": "word " * n} for n in (1, 5000, 300)]
    engine = {"name": "fake", "args": {"max_model_len": 256}}
    recipe = make_run(rows, engine=engine)
    faults = check_rows(read_named(load_recipe(recipe, []))).faults
    assert [(fault.kind, fault.id, fault.line) for fault in faults] == [
        ("prompt_too_long", "q5000", 2),
        ("prompt_too_long", "q300", 3),
    ]
    counted = re.findall(r"have (\d+) tokens, and the context has 256", " ".join(fault.message for fault in faults))
    assert counted == ["5003", "303"], "the toy's tokenizer has three tokens for what is around them"


def test_an_override_on_a_column_that_no_row_has_is_refused(make_run: Callable[..., Path]) -> None:
    rows = [{"id": "a", "video": "a.mp4", "question": "?", "question_type": "count", "categories": {"n": "count"}}]
    names = {"question_type": True, "question_kind": False, "categories.n": True, "categories.number": False}
    for column, is_there in names.items():
        overrides = [{"when": {column: "count"}, "sampling": {"fps": 1}}]
        named = read_named(load_recipe(make_run(rows, overrides=overrides), []))
        if is_there:
            assert check_rows(named).faults == []
            continue
        with pytest.raises(RecipeError, match=column):
            check_rows(named)
        assert len(list(named.rows(Manifest(), begun=True))) == 1, "a run that was made before goes on"


def test_files_that_are_not_there_are_named_without_opening_any(make_run: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "empty.mp4").touch()
    (tmp_path / "noise.mp4").write_bytes(b"no video, which vidpipe plan finds out")
    (tmp_path / "bare").mkdir()
    media: dict[str, dict[str, object]] = {
        "missing": {"video": "nowhere.mp4"},
        "again": {"video": "nowhere.mp4"},
        "empty": {"video": "empty.mp4"},
        "folder": {"video": "bare"},
        "no pictures": {"frames": "bare", "frames_fps": 2},
        "picture gone": {"frames": ["1.png", "2.png"], "frames_fps": 2},
        "subtitles": {"video": "noise.mp4", "subtitles": "words.srt"},
        "there": {"video": "noise.mp4"},
        "link": {"video": "../outside.mp4"},
        "cut": {"video": "noise.mp4", "clip_end": 4.0},
    }
    rows = [{"id": name, "question": "?", **columns} for name, columns in media.items()]
    recipe = make_run(rows, media_root=".")
    faults = check_rows(read_named(load_recipe(recipe, []))).faults
    assert [(fault.id, fault.kind) for fault in faults] == [
        ("missing", "not_found"),
        ("again", "not_found"),
        ("empty", "empty_file"),
        ("folder", "not_a_file"),
        ("no pictures", "not_media"),
        ("picture gone", "not_found"),
        ("subtitles", "not_found"),
        ("link", "outside_root"),
    ]
    assert faults[1].line == 2 and faults[1].message.startswith("line 2, row 'again': ")
    assert "nowhere.mp4: no such file; check `video` and `media_root`" in faults[1].message
