"""Published files to manifests: made-up records with the published columns."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

from vidpipe.benchmarks.import_rows import Choice, import_rows
from vidpipe.benchmarks.profile import Question
from vidpipe.benchmarks.registry import IMPORTERS, PROFILES, get_importer, get_profile
from vidpipe.benchmarks.source import read_source
from vidpipe.benchmarks.vsi import CHOICE_TYPES, NUMBER_TYPES
from vidpipe.cli.app import app
from vidpipe.errors import ManifestError, RecipeError
from vidpipe.manifest.row import Record, Row
from vidpipe.manifest.rows import to_row
from vidpipe.plan.prompts import PromptTemplate
from vidpipe.recipe.schema import Recipe

TYPES = (*NUMBER_TYPES, *CHOICE_TYPES)


def vsi_records(count: int = 40) -> list[dict[str, Any]]:
    """Records with the published columns and types; types come in unequal numbers."""
    records = []
    for i in range(count):
        question_type = TYPES[i % len(TYPES)] if i % 3 else TYPES[0]
        choice = question_type in CHOICE_TYPES
        records.append(
            {
                "id": i,
                "dataset": ("arkitscenes", "scannet")[i % 2],
                "scene_name": f"{i % 7:06}",
                "question_type": question_type,
                "question": f"Question {i}?",
                "ground_truth": "AB"[i % 2] if choice else str(1 + i % 5),
                "options": ["A. left", "B. right"] if choice else None,
                "pruned": i % 4 == 0,
            }
        )
    return records


def write_source(folder: Path, records: list[dict[str, Any]], name: str = "test.jsonl") -> Path:
    path = folder / name
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(records), path)
    else:
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def imported(path: Path, **choice: Any) -> list[dict[str, Any]]:
    return list(import_rows(get_importer("vsi"), read_source(path), path.parent, Choice(**choice)).rows)


@pytest.mark.parametrize("name", ["test.jsonl", "test.parquet"])
def test_every_record_becomes_a_row_that_can_run(tmp_path: Path, name: str) -> None:
    rows = imported(write_source(tmp_path, vsi_records(), name))
    assert [row["id"] for row in rows] == [str(i) for i in range(40)]
    assert rows[1]["video"] == "scannet/000001.mp4" and rows[1]["clip_id"] == "scannet/000001"
    assert all(isinstance(to_row(Record(1, row), 0, recipe_has_prompt=True), Row) for row in rows)
    assert {row["answer_type"] for row in rows if "options" in row} == {"choice"}


def test_prompts_are_those_of_the_official_harness(tmp_path: Path) -> None:
    path = Path(__file__).parent / "vsi_prompts.json"
    for case in json.loads(path.read_text()):
        (row,) = imported(write_source(tmp_path, [case["doc"]]))
        made = to_row(Record(1, row), 0, recipe_has_prompt=True)
        assert isinstance(made, Row)
        assert PromptTemplate(get_importer("vsi").prompt).user_text(made) == case["expected"]


def test_the_published_parts(tmp_path: Path) -> None:
    path = write_source(tmp_path, vsi_records())
    pruned, debiased = (imported(path, subset=name) for name in ("pruned", "debiased"))
    assert len(pruned) == 10 and len(debiased) == 30
    assert {row["categories"]["pruned"] for row in debiased} == {"false"}
    old = [{key: value for key, value in record.items() if key != "pruned"} for record in vsi_records()]
    with pytest.raises(RecipeError, match="newer published file"):
        imported(write_source(tmp_path, old), subset="debiased")
    with pytest.raises(RecipeError, match="debiased, pruned"):
        imported(path, subset="hard")


def test_a_small_set_keeps_every_question_type(tmp_path: Path) -> None:
    path = write_source(tmp_path, vsi_records(200))
    small = imported(path, limit=20, stratify="question_type")
    counts = [[row["question_type"] for row in small].count(name) for name in TYPES]
    assert counts == [2] * 10
    assert [int(row["id"]) for row in small] == sorted(int(row["id"]) for row in small)
    assert imported(path, limit=3) == imported(path)[:3]
    pruned = imported(path, limit=20, stratify="categories.pruned")
    assert [row["categories"]["pruned"] for row in pruned].count("true") == 10
    for wrong in ({"limit": 5, "stratify": "question_type"}, {"limit": 5, "stratify": "kind"}):
        with pytest.raises(RecipeError, match="--"):
            imported(path, **wrong)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ground_truth": 4}, "column ground_truth: text was published, found 4"),
        ({"options": "A. left"}, "column options: list or null"),
        ({"scene_name": None}, "column scene_name"),
    ],
)
def test_another_type_than_published_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = write_source(tmp_path, [*vsi_records(2), {**vsi_records(1)[0], "id": 9, **change}])
    with pytest.raises(ManifestError, match=f"record 3, {message}"):
        imported(path)


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("timelens", {"video_path": "a.mp4", "query": "?", "span": []}),
        (
            "nextqa",
            {"video": 1, "qid": 2, "type": "XX", "question": "?", "answer": 0, **{f"a{n}": "x" for n in range(5)}},
        ),
        ("activitynetqa", {"question_id": "q", "video_name": "v", "question": "?", "answer": "a", "type": 12}),
    ],
)
def test_a_value_that_was_never_published_is_named(tmp_path: Path, name: str, record: dict[str, Any]) -> None:
    source = read_source(write_source(tmp_path, [record]))
    with pytest.raises(ManifestError, match=f"test.jsonl, record 1: its values are not what {name} publishes"):
        import_rows(get_importer(name), source, tmp_path)


def test_what_is_no_published_file_is_refused(tmp_path: Path) -> None:
    for name, text in (("a.jsonl", '{"id": 1}\n'), ("b.jsonl", "{\n"), ("c.txt", ""), ("d.json", "[1]")):
        (tmp_path / name).write_text(text)
        with pytest.raises(ManifestError):
            imported(tmp_path / name)
    (tmp_path / "e.parquet").write_text("no")
    for name in ("e.parquet", "none.jsonl"):
        with pytest.raises(ManifestError):
            imported(tmp_path / name)
    with pytest.raises(ManifestError, match="stand twice"):
        imported(write_source(tmp_path, vsi_records(1) * 2))


def test_the_command_writes_the_same_bytes_again_and_names_what_is_missing(tmp_path: Path) -> None:
    path = write_source(tmp_path, vsi_records())
    (tmp_path / "scannet").mkdir()
    (tmp_path / "scannet" / "000001.mp4").touch()
    arguments = ["import", "vsi", "--src", str(path), "--media-root", str(tmp_path), "--json"]
    documents = []
    for folder in ("one", "two"):
        result = CliRunner().invoke(app, [*arguments, "-o", str(tmp_path / folder)])
        assert result.exit_code == 0, result.output
        documents.append(json.loads(result.stdout))
    assert (documents[0]["rows"], documents[0]["source_rows"]) == (40, 40)
    assert "scannet/000001.mp4" not in documents[0]["missing_videos"] and len(documents[0]["missing_videos"]) == 13
    for name in ("rows.jsonl", "recipe.yaml"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    recipe = Recipe.model_validate(yaml.safe_load((tmp_path / "one" / "recipe.yaml").read_text()))
    assert documents[0]["source_sha256"] in recipe.description and recipe.generation.max_tokens == 16
    assert recipe.scorer == "vsi.official"


@pytest.mark.parametrize("name", IMPORTERS)
def test_importers_name_a_profile_that_exists(name: str) -> None:
    assert get_importer(name).name == name and get_importer(name).profile in PROFILES


def row_of(name: str, path: Path, records: list[dict[str, Any]]) -> tuple[dict[str, Any], str]:
    """The first row of `records` and the user text that the benchmark's recipe makes of it."""
    path.write_text(json.dumps(records))
    row = import_rows(get_importer(name), read_source(path), path.parent).rows[0]
    made = to_row(Record(1, row), 0, recipe_has_prompt=True)
    assert isinstance(made, Row)
    return row, PromptTemplate(get_importer(name).prompt).user_text(made)


def test_videomme(tmp_path: Path) -> None:
    names = ("question_id", "videoID", "question", "answer", "duration", "domain", "sub_category", "task_type", "url")
    record = {**{name: name for name in names}, "options": ["A. Red.", "B. Blue."], "answer": "B"}
    row, text = row_of("videomme", tmp_path / "test.json", [record])
    assert (row["video"], row["clip_id"], row["meta"]) == ("data/videoID.mp4", "videoID", {"url": "url"})
    assert row["categories"]["duration"] == "duration" and row["question_type"] == "task_type"
    assert text.startswith("Select the best answer") and text.endswith(
        "correct option.\nquestion\nA. Red.\nB. Blue.\nThe best answer is:"
    )


def test_mvbench_takes_its_task_from_the_file_name_and_bounds_as_the_clip(tmp_path: Path) -> None:
    record = {"video": "a.mp4", "question": "What?", "candidates": ["Sit.", "Run."], "answer": "Run.", "start": 1.5}
    row, text = row_of("mvbench", tmp_path / "action_sequence.json", [{**record, "end": 4}])
    assert (row["id"], row["question_type"]) == ("action_sequence-0", "action_sequence")
    assert row["video"] == "star/Charades_v1_480/a.mp4"
    assert (row["clip_start"], row["clip_end"]) == (1.5, 4)
    assert text == "Question:What?\nOption:\n(A) Sit.\n(B) Run.\nOnly give the best option.\n"
    row, _ = row_of("mvbench", tmp_path / "moving_count.json", [{**record, "start": None}])
    assert "clip_end" not in row


def test_longvideobench_options_end_at_the_first_that_is_absent(tmp_path: Path) -> None:
    record = {name: name for name in ("id", "video_id", "question", "question_category", "topic_category")}
    options = {"option0": "cup", "option1": "book", "option2": "N/A", "option3": "N/A", "option4": "N/A"}
    record |= {"video_path": "a.mp4", "correct_choice": 1, "duration_group": 60, **options}
    row, text = row_of("longvideobench", tmp_path / "val.json", [record])
    assert (row["video"], row["answer"], row["options"]) == ("videos/a.mp4", 1, ["cup", "book"])
    assert text == "question\nA. cup\nB. book\nAnswer with the option's letter from the given choices directly.\n"
    scored = get_profile(get_importer("longvideobench").profile).rule(
        "B", Question(row["answer"], "", tuple(row["options"]))
    )
    assert scored.score == 1
    row, _ = row_of("longvideobench", tmp_path / "val.json", [{**record, "correct_choice": -1}])
    assert "answer" not in row


def test_egoschema(tmp_path: Path) -> None:
    record = {"question_idx": "7", "video_idx": "v", "question": "What?", "option": ["A. a", "B. b"], "answer": "1"}
    row, text = row_of("egoschema", tmp_path / "subset.json", [record])
    assert (row["id"], row["video"], row["answer"]) == ("7", "videos/v.mp4", 1)
    assert text == "What?\nA. a\nB. b\nAnswer with the option's letter from the given choices directly."
    assert get_profile(get_importer("egoschema").profile).rule("B.", Question(1, "", ("A. a", "B. b"))).score == 1


def test_timelens(tmp_path: Path) -> None:
    record = {"video_path": "v/a.mp4", "query": "a person sits", "span": [[1.5, 4.0], [6, 7]]}
    row, text = row_of("timelens", tmp_path / "charades.json", [record])
    assert (row["id"], row["answer"], row["categories"]) == ("charades-0", [1.5, 4.0], {"source": "charades"})
    assert "clip_start" not in row and "described by the sentence 'a person sits', determining" in text
    scored = get_profile(get_importer("timelens").profile).rule(
        "The event happens in 1.5 - 4.0 seconds", Question(row["answer"])
    )
    assert scored.score == 1


def test_mlvu_takes_task_and_folder_from_the_file_name(tmp_path: Path) -> None:
    record = {"video": "a.mp4", "question": "What colour?", "candidates": ["Yellow", "Red"], "answer": "Red"}
    row, text = row_of("mlvu", tmp_path / "2_needle.json", [{**record, "question_type": "findNeedle"}])
    assert (row["id"], row["video"], row["question_type"]) == ("needle-0", "2_needle/a.mp4", "needle")
    assert text == "What colour?\n(A) Yellow\n(B) Red\nOnly give the best option.\nBest option: ("
    question = Question(row["answer"], row["question_type"], tuple(row["options"]))
    assert get_profile(get_importer("mlvu").profile).rule("B) Red", question).score == 1


def test_revsi_asks_for_every_frame_of_its_videos(tmp_path: Path) -> None:
    record = {"scene_id": "s", "num_frames": 32, "question_type": "route_planning", "question": "Which turn?"}
    row, text = row_of("revsi", tmp_path / "a.json", [{**record, "options": ["A. left"], "ground_truth": "A"}])
    assert (row["video"], row["sampling"], row["id"]) == ("32_frame/s.mp4", {"num_frames": 32}, "0")
    assert text.endswith(
        "Which turn?\nOptions:\nA. left\nAnswer with the option's letter from the given choices directly."
    )


def test_a_published_parquet_is_read_without_threads_that_could_outlive_python(tmp_path: Path) -> None:
    # Threads of Arrow's that hold Python's bytes while it shuts down abort the process, about once in 60 imports.
    source = write_source(tmp_path, vsi_records(30), "test.parquet")
    program = (
        "import os, sys; import pyarrow.parquet; from pathlib import Path\n"
        "from vidpipe.benchmarks.source import read_source\n"
        "before = len(os.listdir('/proc/self/task'))\n"
        "records = read_source(Path(sys.argv[1])).files[0].records\n"
        "print(len(records), len(os.listdir('/proc/self/task')) - before)"
    )
    result = subprocess.run([sys.executable, "-c", program, source], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["30", "0"]
