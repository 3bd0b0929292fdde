"""Rows of every kind through a whole run with the scripted engine: what is shown, recorded and refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image as Picture

from tests.conftest import TINY_MODEL, vidpipe
from tests.job.test_run import go, rows_of
from tests.video.clips import write_blocks
from vidpipe.engine.fake import FakePreparer
from vidpipe.engine.interface import EngineInput, Request, Video
from vidpipe.errors import CapabilityError
from vidpipe.job.forecast import forecast
from vidpipe.job.prospect import look_ahead
from vidpipe.recipe.load import load_recipe
from vidpipe.recipe.schema import Generation

Make = Callable[..., Path]


def picture(path: Path, level: int = 100, width: int = 64, height: int = 48) -> Path:
    Picture.fromarray(np.full((height, width, 3), level, np.uint8)).save(path)
    return path


def test_several_videos_and_images_of_a_row(make_run: Make, tmp_path: Path) -> None:
    picture(tmp_path / "one.png", 30)
    picture(tmp_path / "two.png", 60, width=300, height=200)
    rows: list[dict[str, Any]] = [
        {"id": "one", "video": "a.mp4", "question": "?"},
        {"id": "two", "video": ["a.mp4", "b.mp4"], "question": "?"},
        {"id": "cut", "video": ["b.mp4", "a.mp4"], "clips": [{"start": 1, "end": 2}, None], "question": "?"},
        {"id": "still", "images": ["one.png"], "question": "?"},
        {"id": "mixed", "images": ["two.png", "one.png"], "video": "b.mp4", "question": "?"},
        {"id": "text", "video": [], "question": "?"},
    ]
    found = rows_of(go(make_run(rows)))
    assert {row["status"] for row in found.values()} == {"ok"}
    one, two, cut, still, mixed, text = (found[row["id"]] for row in rows)
    assert [one["clip_id"], two["clip_id"]] == ["a.mp4", "a.mp4 + b.mp4"]
    assert one["more_frames"] == [] and two["frames"] == one["frames"]
    assert [frames["indices"] for frames in two["more_frames"]] == [one["frames"]["indices"]]
    assert two["vision_tokens"]["asked"] == 2 * one["vision_tokens"]["asked"]
    assert cut["clip_id"] == "b.mp4#t=1,2 + a.mp4"
    assert all(1 <= time_s < 2 for time_s in cut["frames"]["times_s"])
    assert cut["more_frames"] == [one["frames"]]
    assert still["frames"] is None and still["images"][0]["size_wh"] == [64, 64] and still["images"][0]["sha"]
    assert still["vision_tokens"]["asked"] == 4 and still["media"]["outcome"] == "ok"
    assert [image["size_wh"] for image in mixed["images"]] == [[288, 192], [64, 64]]
    assert mixed["frames"]["count"] == 6 and mixed["vision_tokens"]["asked"] == 9 * 6 + 4 + 12
    assert text["frames"] is None and text["media"] is None and text["clip_id"] is None and text["images"] == []
    assert text["vision_tokens"]["asked"] == 0


def test_rows_with_the_same_media_share_one_decode(make_run: Make) -> None:
    rows = [{"id": f"r{i}", "video": ["a.mp4", "b.mp4"][:: 1 if i % 2 else -1], "question": f"{i}"} for i in range(6)]
    rows += [{"id": f"t{i}", "video": [], "question": f"{i}"} for i in range(3)]
    plan = look_ahead(load_recipe(make_run(rows), [])).plan
    prospect = look_ahead(load_recipe(make_run(rows), []))
    clips = plan(prospect.manifest.rows).clips
    assert [len(clip.rows) for clip in clips] == [3, 3, 1, 1, 1]
    assert [clip.name for clip in clips][:3] == ["b.mp4, a.mp4", "a.mp4, b.mp4", "row 't0'"]
    found = forecast(prospect)
    assert found.clips == 5 and found.frames == 24 and found.unknown_clips == 0 and found.unreadable == {}


def test_the_budget_counts_all_media_of_a_clip(make_run: Make, tmp_path: Path) -> None:
    picture(tmp_path / "large.png", 30, width=640, height=480)
    rows = [
        {"id": "one", "video": "a.mp4", "question": "?"},
        {"id": "two", "video": ["a.mp4", "b.mp4"], "images": ["large.png"], "question": "?"},
    ]
    prospect = look_ahead(load_recipe(make_run(rows), []))
    one, two = prospect.plan(prospect.manifest.rows).clips
    a, b = prospect.reader.look(one), prospect.reader.look(two)
    assert b.media_bytes == 2 * a.media_bytes + 3 * 640 * 480 * (1 + 2 * 4)
    assert prospect.reader.read(two).seen.frame_bytes == 2 * prospect.reader.read(one).seen.frame_bytes + 3 * 640 * 480
    assert (b.frames, b.duration_s) == (2 * a.frames + 1, 2 * a.duration_s)


def test_one_broken_medium_costs_its_rows(make_run: Make, tmp_path: Path) -> None:
    (tmp_path / "page.png").write_text("<html>")
    (tmp_path / "cut.png").write_bytes(picture(tmp_path / "whole.png").read_bytes()[:60])
    rows = [
        {"id": "gone", "video": ["a.mp4", "none.mp4"], "question": "?"},
        {"id": "page", "images": ["page.png"], "question": "?"},
        {"id": "cut", "images": ["cut.png"], "question": "?"},
        {"id": "out", "images": ["whole.png"], "video": "a.mp4", "question": "?"},
    ]
    found = rows_of(go(make_run(rows)))
    assert {name: row["error_kind"] for name, row in found.items()} == {
        "gone": "not_found", "page": "not_media", "cut": "truncated", "out": None,
    }  # fmt: skip
    assert "none.mp4" in found["gone"]["error"]


def test_a_family_without_images_refuses_their_rows_only(make_run: Make, tmp_path: Path) -> None:
    picture(tmp_path / "one.png")
    rows = [
        {"id": "plain", "video": "a.mp4", "question": "?"},
        {"id": "still", "images": ["one.png"], "question": "?"},
        {"id": "two", "video": ["a.mp4", "b.mp4"], "question": "?"},
        {"id": "text", "video": [], "question": "?"},
    ]
    model = {"path": str(tmp_path / "moss"), "family": "moss_vl"}
    (tmp_path / "moss").mkdir()
    (tmp_path / "moss" / "config.json").write_text('{"model_type": "moss_vl"}')
    found = rows_of(go(make_run(rows, model=model)))
    assert {name: row["error_kind"] for name, row in found.items()} == {
        "plain": None, "still": "bad_value", "two": "bad_value", "text": None,
    }  # fmt: skip
    assert "moss_vl takes no images" in found["still"]["error"]
    prospect = look_ahead(load_recipe(make_run(rows, model=model), []))
    assert prospect.most_media() == {"video": 1, "image": 0}
    with pytest.raises(CapabilityError, match=r"none of 2 rows.*moss_vl takes one video.*qwen3_vl"):
        go(make_run([rows[2], {**rows[2], "id": "more"}], model=model), fresh=True)


def test_the_engine_is_told_the_most_media_of_a_row(make_run: Make) -> None:
    rows = [
        {"id": "1", "images": ["1.png"] * 3, "question": "?"},
        {"id": "2", "images": ["1.png"], "video": ["a.mp4"] * 4, "question": "?"},
    ]
    assert look_ahead(load_recipe(make_run(rows), [])).most_media() == {"video": 4, "image": 3}
    assert look_ahead(load_recipe(make_run(), [])).most_media() == {"video": 1, "image": 0}


def test_check_and_plan_know_them(make_run: Make, tmp_path: Path) -> None:
    picture(tmp_path / "one.png")
    rows: list[dict[str, Any]] = [
        {"id": "ok", "images": ["one.png"], "video": "a.mp4", "question": "?"},
        {"id": "none", "images": ["none.png"], "question": "?"},
        {"id": "bad", "images": [3], "question": "?"},
    ]
    recipe = make_run(rows)
    checked = json.loads(vidpipe("check", recipe, "--json").stdout)
    faults = [(fault["kind"], fault["id"]) for fault in checked["faults"]]
    assert faults == [("not_found", "none"), ("bad_value", "bad")]
    planned = json.loads(vidpipe("plan", recipe, "--json").stdout)
    assert planned["frames"] == 7 and planned["vision_tokens"] == 16 and planned["unreadable"][0]["kind"] == "not_found"


def test_a_manifests_own_images_column_stays(make_run: Make, tmp_path: Path) -> None:
    picture(tmp_path / "one.png")
    result = go(make_run([{"id": "r", "images": ["one.png"], "question": "?"}]))
    assert json.loads(pq.read_table(result.results)["manifest.images"][0].as_py()) == ["one.png"]


def folder_of(path: Path, numbers: range) -> Path:
    path.mkdir()
    for number in numbers:
        picture(path / f"{number}.png", 2 * number)
    return path


def test_videos_that_lie_as_pictures(make_run: Make, tmp_path: Path) -> None:
    folder_of(tmp_path / "shots", range(1, 31))  # 10 s at 3 a second; names in natural order only
    listed = [f"shots/{number}.png" for number in range(1, 31)]
    frames = {"frames_fps": 3, "question": "?"}
    rows: list[dict[str, Any]] = [
        {"id": "video", "video": "shots", **frames},
        {"id": "frames", "frames": "shots", **frames},
        {"id": "list", "frames": listed, **frames},
        {"id": "numbered", "frames": "shots", "frames_start_index": 1, **frames},
        {"id": "cut", "frames": "shots", "clip_start": 2, "clip_end": 4, **frames},
        {"id": "gap", "frames": listed[:10] + listed[20:], "frames_start_index": 1, **frames},
        {"id": "file", "video": "a.mp4", **frames},
        {"id": "no rate", "video": "shots", "question": "?"},
        {"id": "out", "frames": ["../out.png"], **frames},
    ]
    found = rows_of(go(make_run(rows, media_root=".")))
    expected = {"file": "not_media", "no rate": "not_a_file", "out": "outside_root"}
    assert {name: row["error_kind"] for name, row in found.items() if row["error_kind"]} == expected
    whole = found["video"]["frames"]
    assert whole["count"] == 20 and whole["indices"][:3] == [0, 2, 3] and whole["indices"][-1] == 29
    assert whole["times_s"] == pytest.approx([index / 3 for index in whole["indices"]])
    assert found["frames"]["frames"] == found["list"]["frames"] == found["numbered"]["frames"] == whole
    assert found["list"]["clip_id"] == "shots/1.png"
    assert found["cut"]["frames"]["indices"][0] == 6 and found["cut"]["frames"]["indices"][-1] == 11
    gap = found["gap"]
    assert gap["media"] == {"outcome": "ok_partial", "frames_missing": 10, "notes": []}
    assert gap["frames"]["times_s"][-1] == pytest.approx(29 / 3) and gap["frames"]["indices"][-1] == 19


def test_links_in_a_folder_do_not_lead_out(make_run: Make, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    folder_of(tmp_path / "root" / "shots", range(3))
    (tmp_path / "root" / "shots" / "9.png").symlink_to(picture(tmp_path / "secret.png"))
    rows = [{"id": "r", "frames": "shots", "frames_fps": 1, "question": "?"}]
    assert rows_of(go(make_run(rows, media_root="root")))["r"]["error_kind"] == "outside_root"


def test_the_plan_reads_folders_too(make_run: Make, tmp_path: Path) -> None:
    folder_of(tmp_path / "shots", range(1, 31))
    rows = [{"id": "r", "frames": "shots", "frames_fps": 3, "clip_end": 5, "question": "?"}]
    prospect = look_ahead(load_recipe(make_run(rows), []))
    (clip,) = prospect.plan(prospect.manifest.rows).clips
    outlook = prospect.reader.look(clip)
    assert (outlook.frames, outlook.duration_s) == (10, 10.0)
    assert prospect.reader.read(clip).seen.videos[0].count == 10
    assert outlook.vision_tokens == prospect.reader.read(clip).seen.vision_tokens


def test_windows_by_either_name(make_run: Make, make_clip: Make) -> None:
    make_clip("ten.mp4", frames=30, fps=10)
    windows: dict[str, dict[str, Any]] = {
        "published": {"start": 0.5, "end": 1.5}, "ours": {"clip_start": 0.5, "clip_end": 1.5}, "open": {"start": 2.5},
        "reversed": {"start": 1.5, "end": 0.5}, "negative": {"start": -1, "end": 1}, "past": {"start": 99, "end": 100},
        "between": {"start": 2.95, "end": 2.96}, "text": {"start": "0:01"}, "twice": {"start": 1, "clip_start": 1},
    }  # fmt: skip
    rows = [{"id": name, "video": "ten.mp4", "question": "?", **window} for name, window in windows.items()]
    found = rows_of(go(make_run(rows, sampling={"fps": 10})))
    good = {name: row["frames"]["indices"] for name, row in found.items() if row["status"] == "ok"}
    assert good == {"published": [*range(5, 15)], "ours": [*range(5, 15)], "open": [*range(25, 30)]}
    assert {row["error_kind"] for row in found.values()} == {None, "bad_window"}


def test_subtitles_are_read_with_their_video(make_run: Make, tmp_path: Path) -> None:
    (tmp_path / "a.srt").write_text("1\n00:00:00,000 --> 00:00:01,000\nHello\n")
    (tmp_path / "page.srt").write_text("<html>")
    same = {"video": "a.mp4", "subtitles": "a.srt"}
    rows: list[dict[str, Any]] = [
        {"id": "1", **same, "question": "?"},
        {"id": "2", **same, "question": "And?"},
        {"id": "plain", "video": "a.mp4", "question": "?"},
        {"id": "late", **same, "subtitle_offset": -60, "question": "?"},
        {"id": "gone", "video": "a.mp4", "subtitles": ["a.srt", "none.srt"], "question": "?"},
        {"id": "page", "video": "a.mp4", "subtitles": "page.srt", "question": "?"},
        {"id": "out", "video": "a.mp4", "subtitles": "../a.srt", "question": "?"},
    ]
    recipe = make_run(rows, media_root=".")
    prospect = look_ahead(load_recipe(recipe, []))
    clips = prospect.plan(prospect.manifest.rows).clips
    assert [[planned.row.id for planned in clip.rows] for clip in clips][:3] == [["1", "2"], ["plain"], ["late"]]
    (shown,) = prospect.reader.read(clips[0]).media
    assert isinstance(shown, Video) and shown.texts_behind == ("subtitle\n0.0 - 1.0 Hello", "", "")
    found = rows_of(go(recipe))
    kinds = {"gone": "not_found", "page": "not_media", "out": "outside_root"}
    assert {name: row["error_kind"] for name, row in found.items() if row["error_kind"]} == kinds
    assert found["1"]["media"]["notes"][-1] == "subtitles: 1 of 1 cues stand between the frames"
    assert found["late"]["media"]["notes"][-1] == "subtitles: 0 of 1 cues stand between the frames"
    assert found["1"]["frames"] == found["plain"]["frames"]


def test_subtitles_need_a_family_with_text_between_frames(make_run: Make, tmp_path: Path) -> None:
    (tmp_path / "a.srt").write_text("1\n00:00:00,000 --> 00:00:01,000\nHello\n")
    (tmp_path / "ernie").mkdir()
    (tmp_path / "ernie" / "config.json").write_text('{"model_type": "ernie4_5_vl_moe"}')
    rows = [
        {"id": "plain", "video": "a.mp4", "question": "?"},
        {"id": "told", "video": "a.mp4", "subtitles": "a.srt", "question": "?"},
    ]
    found = rows_of(go(make_run(rows, model={"path": str(tmp_path / "ernie")})))
    assert [found["plain"]["status"], found["told"]["error_kind"]] == ["ok", "bad_value"]
    assert "Put their text into the prompt" in found["told"]["error"]


def test_sets_and_styles_reach_the_output(make_run: Make) -> None:
    options = {"options": ["red", "blue"], "option_style": "paren", "question": "Which?"}
    rows = [{"id": f"{n}", "video": "a.mp4", "set_id": "s", "set_index": n, **options} for n in (2, 1)]
    rows.append({**rows[0], "id": "again"})
    found = rows_of(go(make_run(rows, prompt="{{ question }} {{ options | join(' ') }}")))
    assert [(row["set_id"], row["set_index"], row["error_kind"]) for row in found.values()] == [
        ("s", "2", None), ("s", "1", None), ("s", "2", "bad_value"),
    ]  # fmt: skip
    assert found["1"]["option_style"] == "paren"


def test_rows_of_text_only_are_no_clip_of_several() -> None:
    asked = [Request(name, ({"role": "user", "content": "Hi"},), Generation()) for name in ("a", "b")]
    clips = [made.clip for made in FakePreparer().prepare(asked, []).inputs if isinstance(made, EngineInput)]
    assert clips == ["a", "b"], "several engines share them out"


@pytest.mark.parametrize("family", ["qwen3_vl", "minimax_m3"])
def test_a_header_that_claims_any_number_of_frames_costs_no_run(make_run: Make, tmp_path: Path, family: str) -> None:
    """AVI recorders write 0xFFFFFFFF until they know better; one that was killed never does."""
    content = bytearray(
        write_blocks(tmp_path / "whole.avi", codec="mjpeg", pix_fmt="yuvj420p", options={"g": "1"}).read_bytes()
    )
    header = content.index(b"strh") + 8
    content[header + 32 : header + 36] = b"\xff" * 4
    (tmp_path / "lie.avi").write_bytes(content)
    (tmp_path / "cut.avi").write_bytes(content[: len(content) // 2])
    rows = [{"id": name, "video": name, "question": "?"} for name in ("cut.avi", "lie.avi", "a.mp4")]
    recipe = make_run(rows, model={"path": str(TINY_MODEL), "family": family})
    planned = forecast(look_ahead(load_recipe(recipe, [])))
    assert (planned.unknown_clips, planned.video_s, planned.unreadable) == (2, 3.0, {})
    found = rows_of(go(recipe))
    assert {row["status"] for row in found.values()} == {"ok"}
    assert found["cut.avi"]["media"]["outcome"] == "ok_partial" and found["cut.avi"]["media"]["frames_missing"] > 2**31
    assert found["lie.avi"]["media"]["outcome"] == "ok"


def test_a_bound_that_no_clip_has_costs_its_row(make_run: Make) -> None:
    rows: list[dict[str, Any]] = [{"id": "a", "video": "a.mp4", "question": "?"}]
    rows += [{**rows[0], "id": f"most{n}", "sampling.min_pixels": 2**n} for n in (40, 41, 80)]
    found = rows_of(go(make_run(rows)))
    assert [row["status"] for row in found.values()] == ["ok", "ok", "row_error", "row_error"]
