"""Benchmarks beside VSI-Bench: made-up records with the published columns, to rows and prompts."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

from tests.benchmarks.test_import import row_of
from tests.conftest import TINY_MODEL
from vidpipe.benchmarks.import_rows import Choice, Imported, import_rows
from vidpipe.benchmarks.profile import Question
from vidpipe.benchmarks.registry import IMPORTERS, PROFILES, get_importer, get_profile
from vidpipe.benchmarks.settings import SETTINGS, get_setting
from vidpipe.benchmarks.source import read_source
from vidpipe.benchmarks.write import write_benchmark
from vidpipe.cli.app import app
from vidpipe.errors import ManifestError, RecipeError
from vidpipe.manifest.row import Record, Row
from vidpipe.manifest.rows import to_row
from vidpipe.models.registry import get_family
from vidpipe.plan.prompts import PromptTemplate, messages_for
from vidpipe.recipe.resolve import resolve_row
from vidpipe.recipe.schema import Recipe


def imported(name: str, path: Path, **choice: Any) -> Imported:
    return import_rows(get_importer(name), read_source(path), path if path.is_dir() else path.parent, Choice(**choice))


def score(name: str, row: dict[str, Any], text: str) -> float:
    question = Question(
        row.get("answer"), row.get("question_type", ""), tuple(row.get("options", ())), row["answer_type"],
        tuple(row.get("answers", ())), row["question"],
    )  # fmt: skip
    return get_profile(get_importer(name).profile).rule(text, question).score


def test_tempcompass_tells_its_tasks_by_the_files_and_asks_each_in_its_own_way(tmp_path: Path) -> None:
    def record(question: str, answer: str) -> dict[str, str]:
        return {"video_id": "v1", "question": question, "answer": answer, "dim": "speed"}

    matching = "Which fits?\nOption 1: A man runs.\nOption 2: A man walks."
    files = {
        "caption_matching": record(matching, "Option 1: A man runs."),
        "multi-choice": record("How fast?\nA. slow\nB. fast", "B. fast"),
        "yes_no": record("Is it fast?", "yes"),
        "captioning": {**record("Describe.", ""), "answer": None, "mc_question": "?", "mc_answer": "A. slow"},
    }
    for task, one in files.items():
        (tmp_path / f"{task}.json").write_text(json.dumps([one]))
    rows = {row["question_type"]: row for row in imported("tempcompass", tmp_path).rows}
    assert sorted(row["id"] for row in rows.values()) == sorted(f"{task}-v1-0" for task in files)
    right = {"caption_matching": "Option 1", "multi-choice": "B. fast", "yes_no": "Yes, it is"}
    assert [score("tempcompass", rows[task], text) for task, text in right.items()] == [1, 1, 1]
    assert score("tempcompass", rows["caption_matching"], "A man walks.") == 0
    assert "answer" not in rows["captioning"] and rows["captioning"]["meta"]["mc_answer"] == "A. slow"
    _, text = row_of("tempcompass", tmp_path / "yes_no.json", [files["yes_no"]])
    assert text == "Is it fast?\nPlease answer yes or no:"
    _, text = row_of("tempcompass", tmp_path / "caption_matching.json", [files["caption_matching"]])
    assert text == f"{matching}\nPlease directly give the best option:"


def test_tempcompass_official_files_nest_video_and_aspect(tmp_path: Path) -> None:
    found = {
        "v1": {"speed": [{"question": "Fast?", "answer": "no"}], "order": [{"question": "First?", "answer": "yes"}]}
    }
    (tmp_path / "yes_no.json").write_text(json.dumps(found))
    rows = imported("tempcompass", tmp_path / "yes_no.json").rows
    assert [(row["video"], row["categories"]["dim"]) for row in rows] == [
        ("videos/v1.mp4", "speed"), ("videos/v1.mp4", "order"),
    ]  # fmt: skip


def test_nextqa_reads_csv_and_finds_videos_by_the_published_map(tmp_path: Path) -> None:
    record = {"video": "04", "frame_count": "9", "width": "2", "height": "2", "question": "why ? ", "answer": "2"}
    record |= {"qid": "6", "type": "CW", **{f"a{n}": f"{'abcde'[n]} " for n in range(5)}}
    path = tmp_path / "val.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, record)
        writer.writeheader()
        writer.writerow(record)
    (row,) = imported("nextqa", path).rows
    assert (row["id"], row["video"], row["answer"], row["clip_id"]) == ("04_6", "04.mp4", 2, "04")
    assert (
        row["categories"] == {"kind": "causal"} and row["meta"]["frame_count"] == "9" and score("nextqa", row, "C") == 1
    )
    (tmp_path / "map_vid_vidorID.json").write_text('{"04": "1164/04"}')
    (row,) = imported("nextqa", path).rows
    assert row["video"] == "1164/04.mp4"
    _, text = row_of("nextqa", tmp_path / "hub.json", [{**record, "video": 4, "qid": 6, "answer": 2}])
    assert text == "why ?\nA. a\nB. b\nC. c\nD. d\nE. e"
    path.write_text(path.read_text().strip() + ",one cell more\n")
    with pytest.raises(ManifestError, match="more cells than columns"):
        imported("nextqa", path)


def test_charades_keeps_the_values_of_the_text_file(tmp_path: Path) -> None:
    path = tmp_path / "charades_sta_test.txt"
    path.write_text("3MSZA 24.3 30.4##person turn a light on.\nAMT7R 0.0 6.9##person holds a phone.\n")
    rows = imported("charades", path).rows
    assert (rows[0]["id"], rows[0]["video"], rows[0]["answer"]) == ("0", "Charades_v1_480/3MSZA.mp4", [24.3, 30.4])
    record = {"video": "3MSZA.mp4", "caption": "person turn a light on.", "timestamp": [24.3, 30.4]}
    row, text = row_of("charades", tmp_path / "hub.json", [record])
    assert row | {"question": "", "id": ""} == rows[0] | {"question": "", "id": ""}
    assert text.endswith("light on.. Please return its start time and end time.") and "30.4 seonds." in text
    assert score("charades", row, "The event happens in 24.3 - 30.4 seconds") == 1
    path.write_text("3MSZA 24.3##cut\n")
    with pytest.raises(ManifestError, match="VIDEO start end"):
        imported("charades", path)


def test_activitynetqa_joins_its_two_files(tmp_path: Path) -> None:
    question = {"video_name": "abc", "question": "what is the TV brand", "question_id": "v_abc_0"}
    (tmp_path / "test_q.json").write_text(json.dumps([question]))
    (tmp_path / "test_a.json").write_text(json.dumps([{"answer": "sony", "type": 8, "question_id": "v_abc_0"}]))
    (tmp_path / "v_abc.webm").touch()
    found = imported("activitynetqa", tmp_path / "test_q.json")
    (row,) = found.rows
    assert (row["video"], row["question_type"], found.missing_videos) == ("v_abc.webm", "other", ())
    assert score("activitynetqa", row, "sony") == 1 and score("activitynetqa", row, "Sony") == 0
    _, text = row_of("activitynetqa", tmp_path / "hub.json", [{**question, "answer": "sony", "type": "8"}])
    assert text == "What is the tv brand? Answer the question using a single word or phrase."
    pq.write_table(pa.Table.from_pylist([{**question, "answer": "sony", "type": "8"}]), tmp_path / "hub.parquet")
    assert imported("activitynetqa", tmp_path / "hub.parquet").rows[0]["answer"] == "sony"


def test_lvbench_has_its_options_in_the_question(tmp_path: Path) -> None:
    record = {"uid": "5", "video_path": "a.mp4", "question": "What year?\n(A) 1\n(B) 2", "answer": "B"}
    row, text = row_of("lvbench", tmp_path / "a.json", [{**record, "question_type": ["kir", "eu"]}])
    assert (row["id"], row["categories"], "question_type" in row) == ("5", {"question_type": "kir, eu"}, False)
    assert text == "What year?\n(A) 1\n(B) 2\nAnswer the question with the option letter"
    assert score("lvbench", row, "(B) 2") == 1


def test_videoeval_pro(tmp_path: Path) -> None:
    record = {"video": "a.mp4", "question": "Who?", "options": ["A. he", "B. she"], "answer": "B", "answer_text": "she"}
    kinds = {"qa_type": "Local Perception", "qa_subtype": "LP_Action", "source": "lvbench"}
    row, text = row_of("videoeval_pro", tmp_path / "a.json", [{**record, **kinds, "meta": "x"}])
    assert (row["video"], row["answers"], row["categories"]) == ("videos_filtered/a.mp4", ["she"], kinds)
    assert text == "Who?\nA. he\nB. she\nAnswer with the option's letter from the given choices directly."
    assert score("videoeval_pro", row, "B.") == 1


def test_jumpscore(tmp_path: Path) -> None:
    record = {"id": "j1", "video_path": "a.mp4", "question": " When? ", "answer": '["1.20s", "3.00s"]'}
    row, text = row_of("jumpscore", tmp_path / "a.json", [record])
    assert (row["video"], row["answer_type"], text) == ("videos/a.mp4", "times", "When?")
    assert score("jumpscore", row, '["1.2s", "3.0s"]') == 1


def v2_records() -> list[dict[str, Any]]:
    return [
        {
            "question_id": f"7-{n}", "video_id": 7, "question": "What?", "options": "A. x\nB. y", "answer": "B",
            "group_type": "logic", "group_structure": "[1, [2, 3], 4]", "level": 2, "second_head": None,
        }
        for n in range(1, 5)
    ]  # fmt: skip


def test_videomme_v2_makes_sets_and_takes_subtitles_when_asked(tmp_path: Path) -> None:
    row, text = row_of("videomme_v2", tmp_path / "a.json", v2_records())
    assert (row["set_id"], row["options"]) == ("7", ["A. x", "B. y"])
    assert row["categories"] == {"group_structure": "[1, [2, 3], 4]", "level": "2"}
    assert text.startswith("These are the frames of a video.\n") and text.endswith("\nQuestion: What?\nA. x\nB. y")
    found = imported("videomme_v2", tmp_path / "a.json", subtitles=True)
    assert [row["set_index"] for row in found.rows] == [0, 1, 2, 3]
    assert found.missing_subtitles == ("subtitle/7.jsonl",) and "subtitles" not in found.rows[0]
    (tmp_path / "subtitle").mkdir()
    (tmp_path / "subtitle" / "7.jsonl").touch()
    found = imported("videomme_v2", tmp_path / "a.json", subtitles=True)
    assert [row["subtitles"] for row in found.rows] == ["subtitle/7.jsonl"] * 4 and not found.missing_subtitles
    with pytest.raises(RecipeError, match="--subtitles: vsi publishes none"):
        import_rows(get_importer("vsi"), read_source(write_vsi(tmp_path)), tmp_path, Choice(subtitles=True))


def write_vsi(folder: Path) -> Path:
    from tests.benchmarks.test_import import vsi_records, write_source

    return write_source(folder, vsi_records(1), "vsi.jsonl")


def test_mvbench_folder_of_tasks_frames_and_precut(tmp_path: Path) -> None:
    record = {
        "video": "s01",
        "question": "What?",
        "candidates": ["Sit.", "Run."],
        "answer": "Run.",
        "start": 1,
        "end": 4,
    }
    for task in ("action_sequence", "episodic_reasoning"):
        (tmp_path / f"{task}.json").write_text(json.dumps([record]))
    found = imported("mvbench", tmp_path)
    assert [row["id"] for row in found.rows] == ["action_sequence-0", "episodic_reasoning-0"]
    frames = found.rows[1]
    assert "video" not in frames and (frames["frames_fps"], frames["frames_start_index"]) == (3, 1)
    assert frames["frames"] == "tvqa/frames_fps3_hq/s01" and frames["clip_end"] == 4
    assert found.missing_videos == ("star/Charades_v1_480/s01", "tvqa/frames_fps3_hq/s01")
    cut = imported("mvbench", tmp_path, precut=True).rows
    assert [row["video"] for row in cut] == ["star/Charades_segment/s01", "tvqa/video_fps3_hq_segment/s01"]
    assert not {"clip_start", "clip_end", "frames", "frames_fps", "frames_start_index"} & cut[1].keys()
    with pytest.raises(RecipeError, match="--precut: vsi"):
        import_rows(get_importer("vsi"), read_source(write_vsi(tmp_path)), tmp_path, Choice(precut=True))


def test_mlvu_of_the_hub_has_its_options_in_the_question(tmp_path: Path) -> None:
    record = {"video_name": "a.mp4", "question": "What?\n(A) x\n(B) y", "answer": "B", "task_type": "plotQA"}
    row, text = row_of("mlvu", tmp_path / "test.json", [{**record, "question_id": "AR_0"}])
    assert (row["id"], row["video"], row["question_type"]) == ("AR_0", "a.mp4", "plotQA")
    assert text == "What?\n(A) x\n(B) y\nOnly give the best option.\nBest option: (" and score("mlvu", row, "B) y") == 1


def test_egoschema_official_files(tmp_path: Path) -> None:
    questions = [{"q_uid": uid, "question": "What?", **{f"option {n}": f"o{n}" for n in range(5)}} for uid in "ab"]
    path = tmp_path / "questions.json"
    path.write_text(json.dumps(questions))
    (tmp_path / "subset_answers.json").write_text('{"b": 3}')
    rows = imported("egoschema", path).rows
    assert ["answer" in row for row in rows] == [False, True] and rows[1]["answer"] == 3
    assert rows[1]["options"][3] == "D. o3" and score("egoschema", rows[1], "D.") == 1
    assert [row["id"] for row in imported("egoschema", path, subset="subset").rows] == ["b"]


def test_longvideobench_subtitles_carry_their_offset(tmp_path: Path) -> None:
    record: dict[str, Any] = {name: name for name in ("id", "video_id", "question", "question_category")}
    record |= {"topic_category": "t", "video_path": "a.mp4", "correct_choice": 0, "duration_group": 60}
    record |= {"candidates": ["cup", "book"], "subtitle_path": "a.json", "starting_timestamp_for_subtitles": 12.5}
    (tmp_path / "lvb_val.json").write_text(json.dumps([record]))
    (tmp_path / "subtitles").mkdir()
    (tmp_path / "subtitles" / "a.json").touch()
    (row,) = imported("longvideobench", tmp_path / "lvb_val.json", subtitles=True).rows
    assert (row["subtitles"], row["subtitle_offset"], row["options"]) == ("subtitles/a.json", 12.5, ["cup", "book"])
    assert score("longvideobench", row, "A") == 1


def test_a_video_may_have_another_published_ending(tmp_path: Path) -> None:
    names = ("question_id", "videoID", "question", "answer", "duration", "domain", "sub_category", "task_type")
    (tmp_path / "a.json").write_text(json.dumps([{**{name: name for name in names}, "options": ["A. Red."]}]))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "videoID.mkv").touch()
    found = imported("videomme", tmp_path / "a.json")
    assert found.rows[0]["video"] == "data/videoID.mkv" and not found.missing_videos


def test_a_folder_is_named_by_the_hashes_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text('[{"n": 1}]')
    (tmp_path / "a.jsonl").write_text('{"n": 2}\n')
    (tmp_path / "readme.md").write_text("no data")
    source = read_source(tmp_path)
    assert [file.records[0]["n"] for file in source.files] == [2, 1]
    (tmp_path / "b.json").write_text('[{"n": 3}]')
    assert read_source(tmp_path).sha256 != source.sha256
    (tmp_path / "empty").mkdir()
    with pytest.raises(ManifestError, match="without published files"):
        read_source(tmp_path / "empty")


@pytest.mark.parametrize(("name", "benchmark"), [(name, one) for name, found in SETTINGS.items() for one in found])
def test_published_settings_make_recipes_that_their_family_takes(tmp_path: Path, name: str, benchmark: str) -> None:
    setting = get_setting(name, benchmark)
    source = read_source(write_vsi(tmp_path))
    path = write_benchmark(
        tmp_path / "out", get_importer(benchmark), source, Imported(({"id": "1"},), 1, ()), tmp_path, setting=setting
    )
    recipe = Recipe.model_validate(yaml.safe_load(path.read_text()))
    family = get_family("qwen3_vl" if name == "qwen3_vl" else "llava_onevision2")
    for values in [{"categories": {"duration": duration}} for duration in ("short", "medium", "long")]:
        sampling = resolve_row(recipe, values, {}, {}).sampling
        complete = family.complete(sampling, {})
        if name != "official":
            assert (complete.max_frames, complete.max_pixels) == (sampling.max_frames, sampling.max_pixels)
    assert recipe.scorer in PROFILES and setting.source in recipe.description


def test_the_overrides_of_video_mme_hold_for_its_rows(tmp_path: Path) -> None:
    recipe = Recipe.model_validate(
        {"manifest": "m", "model": {"path": "p"}, "sampling": {"rule": "ov2_eval", "fps": 1.0},
         "overrides": list(get_setting("ov2", "videomme").overrides)}
    )  # fmt: skip
    values = {"categories": {"duration": "long"}}
    sampling = resolve_row(recipe, values, {}, {}).sampling
    assert (sampling.max_frames, sampling.max_pixels, sampling.fps) == (640, 102_400, 1.0)


def test_a_setting_that_was_not_published_is_refused_with_those_that_were() -> None:
    with pytest.raises(RecipeError, match="not published for vsi, which has: ov2"):
        get_setting("qwen3_vl", "vsi")


def test_mvbenchs_own_way_of_asking_begins_the_answer(tmp_path: Path) -> None:
    record = {"video": "a.mp4", "question": "What?", "candidates": ["Sit.", "Run."], "answer": "Run."}
    source = tmp_path / "action_count.json"
    source.write_text(json.dumps([record]))
    found = imported("mvbench", source)
    setting = get_setting("official", "mvbench")
    path = write_benchmark(tmp_path, get_importer("mvbench"), read_source(source), found, tmp_path, setting=setting)
    recipe = Recipe.model_validate(yaml.safe_load(path.read_text()))
    row = to_row(Record(1, json.loads((tmp_path / "rows.jsonl").read_text())), 0, recipe_has_prompt=True)
    assert isinstance(row, Row)
    system, user, model = messages_for(row, PromptTemplate(recipe.prompt), recipe.system)
    assert system["content"].startswith("Carefully watch the video") and model["content"] == "Best option:("
    text = user["content"][1]["text"]
    assert text == "Question: What?\nOptions:\n(A) Sit.\n(B) Run.\nOnly give the best option."
    question = Question("Run.", "action_count", ("Sit.", "Run."))
    assert get_profile(recipe.scorer or "").rule("B) Run.", question).score == 1


@pytest.mark.parametrize("record", [{"end": 4, "start": 1}, {}])
def test_frame_folders_are_rows_that_can_run(tmp_path: Path, record: dict[str, Any]) -> None:
    record |= {"video": "s01", "question": "What?", "candidates": ["Sit.", "Run."], "answer": "Run."}
    (tmp_path / "episodic_reasoning.json").write_text(json.dumps([record]))
    (values,) = imported("mvbench", tmp_path / "episodic_reasoning.json").rows
    row = to_row(Record(1, values), 0, recipe_has_prompt=True)
    assert isinstance(row, Row) and row.media[0].kind == "frames" and row.media[0].fps == 3
    assert row.media[0].end_s == record.get("end")


def test_revsis_rows_hold_under_the_rule_that_its_recipe_names(tmp_path: Path) -> None:
    record = {"scene_id": "s", "num_frames": 16, "question_type": "route_planning", "question": "Which turn?"}
    source = tmp_path / "a.json"
    source.write_text(json.dumps([{**record, "options": ["A. left"], "ground_truth": "A"}]))
    found = imported("revsi", source)
    path = write_benchmark(tmp_path, get_importer("revsi"), read_source(source), found, tmp_path)
    recipe = Recipe.model_validate(yaml.safe_load(path.read_text()))
    sampling = resolve_row(recipe, found.rows[0], found.rows[0]["sampling"], {}).sampling
    assert get_family("qwen3_vl").complete(sampling, {}).num_frames == 16


OPTIONS = {"options": ["A. red", "B. blue"]}
RECORDS: dict[str, dict[str, Any]] = {
    "activitynetqa": {"question_id": "q", "video_name": "v", "question": "who?", "answer": "he", "type": 3},
    "charades": {"video": "v.mp4", "caption": "a man sits", "timestamp": [1.0, 2.0]},
    "egoschema": {"question_idx": "1", "video_idx": "v", "question": "?", "option": ["A. x", "B. y"], "answer": "1"},
    "jumpscore": {"id": "1", "video_path": "v.mp4", "question": "?", "answer": "[]"},
    "longvideobench": {
        "id": "1", "video_id": "v", "video_path": "v.mp4", "question": "?", "candidates": ["x", "y"],
        "correct_choice": 0, "duration_group": 60, "question_category": "c", "topic_category": "t",
    },
    "lvbench": {"uid": "1", "video_path": "v.mp4", "question": "?", "answer": "A"},
    "mlvu": {"video": "v.mp4", "question": "?", "candidates": ["x", "y"], "answer": "y"},
    "mvbench": {"video": "v.mp4", "question": "?", "candidates": ["x", "y"], "answer": "y", "start": 0.5, "end": 2},
    "nextqa": {"video": "4", "qid": 1, "type": "TN", "question": "?", "answer": 0, **{f"a{n}": "x" for n in range(5)}},
    "revsi": {"scene_id": "s", "num_frames": 16, "question_type": "room_size_estimation_single", "question": "?",
              "ground_truth": "9"},
    "tempcompass": {"video_id": "v", "question": "?\nA. x\nB. y", "answer": "A. x", "dim": "speed"},
    "timelens": {"video_path": "v.mp4", "query": "a man sits", "span": [[1.0, 2.0]]},
    "videoeval_pro": {
        "video": "v.mp4", "question": "?", **OPTIONS, "answer": "A", "answer_text": "red", "qa_type": "t",
        "qa_subtype": "s", "source": "x",
    },
    "videomme": {
        "question_id": "1", "videoID": "v", "question": "?", **OPTIONS, "answer": "A", "duration": "long",
        "domain": "d", "sub_category": "s", "task_type": "t",
    },
    "videomme_v2": v2_records()[0],
    "vsi": {
        "id": 1, "dataset": "scannet", "scene_name": "s", "question_type": "route_planning", "question": "?", **OPTIONS,
        "ground_truth": "A",
    },
}  # fmt: skip
FILES = {"mvbench": "action_sequence", "tempcompass": "multi-choice", "mlvu": "1_plotQA"}


@pytest.mark.parametrize("name", IMPORTERS)
def test_what_is_imported_can_run_and_be_scored(tmp_path: Path, name: str) -> None:
    source = tmp_path / f"{FILES.get(name, 'test')}.json"
    source.write_text(json.dumps([RECORDS[name]]))
    for command in (
        ["import", name, "--src", source, "--media-root", tmp_path, "-o", tmp_path / "out"],
        ["check", tmp_path / "out" / "recipe.yaml", "--set", f"model.path={TINY_MODEL}", "--json"],
    ):
        result = CliRunner().invoke(app, list(map(str, command)))
        assert result.exit_code == (2 if command[0] == "check" else 0), result.output  # its one row has no video
    checked = json.loads(result.stdout)
    assert checked["rows"] == 1 and [fault["kind"] for fault in checked["faults"]] == ["not_found"], "the video alone"
    row = json.loads((tmp_path / "out" / "rows.jsonl").read_text())
    (tmp_path / "replies.jsonl").write_text(json.dumps({**row, "text": "A"}) + "\n")
    profile = yaml.safe_load((tmp_path / "out" / "recipe.yaml").read_text())["scorer"]
    if get_profile(profile).sets is None:
        result = CliRunner().invoke(app, ["score", str(tmp_path / "replies.jsonl"), "--profile", profile])
        assert result.exit_code == 0 and "1 row:" in result.stdout, result.output
