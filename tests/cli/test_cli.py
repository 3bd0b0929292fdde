"""The command line as scripts see it: exit codes, --json, speed of --help, refusals in words."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.conftest import ROOT, TINY_MODEL, vidpipe
from vidpipe import __version__
from vidpipe.cli.documents import DOCUMENTS, PlanDocument
from vidpipe.models.registry import FAMILIES

Make = Callable[..., Path]
HEAVY = ("torch", "vllm", "cv2", "av", "numpy", "pyarrow", "pydantic", "transformers", "rich.console")


def test_version() -> None:
    assert vidpipe("--version").stdout.strip() == f"vidpipe {__version__}"


def test_help_imports_nothing_heavy() -> None:
    code = f"import sys, vidpipe.cli.app; sys.exit(' '.join(m for m in {HEAVY!r} if m in sys.modules) or 0)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    "command",
    ["run", "check", "plan", "status", "merge", "probe", "frames", "models", "import", "score", "compare", "report"],
)
def test_every_command_has_help(command: str) -> None:
    result = vidpipe(command, "--help")
    assert result.returncode == 0 and command in vidpipe("--help").stdout


def test_a_path_that_cannot_be_written_is_named(make_run: Make, tmp_path: Path) -> None:
    recipe, run_dir = (
        make_run(rows=[{"id": "a", "video": "a.mp4", "question": "?", "answer": "fake"}]),
        tmp_path / "run",
    )
    assert vidpipe("run", recipe, "-o", run_dir).returncode == 0
    for command in (
        ("run", recipe, "-o", recipe / "run"),
        ("score", run_dir, "--profile", "exact", "--rows", tmp_path / "no" / "rows.jsonl"),
        ("score", run_dir, "--profile", "exact", "--submission", tmp_path),
        ("merge", run_dir, "-o", recipe / "all.parquet"),
    ):
        result = vidpipe(*command)
        assert result.returncode == 2 and "Traceback" not in result.stderr, result.stderr
        assert str(tmp_path) in result.stderr and "Give another path" in result.stderr


def test_a_run_its_repetition_and_its_merge(make_run: Make, tmp_path: Path) -> None:
    recipe = make_run()
    first = vidpipe("run", recipe, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "8 of 8 rows (8 ok) in runs/recipe/results.parquet" in first.stdout
    assert first.stdout.splitlines()[-1] == "exit code 0: done"
    again = vidpipe("run", recipe, cwd=tmp_path)
    assert again.returncode == 0 and again.stdout.startswith("nothing to do: 8 rows are in")
    merged = vidpipe("merge", "runs/recipe", "-o", "all.parquet", "--json", cwd=tmp_path)
    assert json.loads(merged.stdout) == {
        "rows": 8,
        "expected": 8,
        "partial": False,
        "missing": [],
        "path": "all.parquet",
    }
    assert pq.read_table(tmp_path / "all.parquet").num_rows == 8
    status = json.loads(vidpipe("status", "runs/recipe", "--json", cwd=tmp_path).stdout)
    assert (status["rows"], status["statuses"], status["workers"]) == (8, {"ok": 8}, [])
    assert "8 of 8 rows (8 ok)" in vidpipe("status", "runs/recipe", cwd=tmp_path).stdout


def test_shares_of_a_run_on_hosts_that_share_no_disk(make_run: Make, tmp_path: Path) -> None:
    rows = [{"id": f"r{i}", "video": "a.mp4", "question": "?", "clip_start": i / 20} for i in range(24)]
    recipe = make_run(rows)
    for part, expected in enumerate((13, 11)):  # whole shards, of equal clips
        result = vidpipe("run", recipe, "-o", tmp_path / f"host{part}", "--shard", f"{part}/2")
        assert result.returncode == 0, result.stderr
        assert pq.read_table(tmp_path / f"host{part}" / "results.parquet").num_rows == expected
    merged = vidpipe("merge", tmp_path / "host0", tmp_path / "host1", "-o", tmp_path / "all.parquet", "--json")
    assert json.loads(merged.stdout)["partial"] is False
    assert pq.read_table(tmp_path / "all.parquet")["id"].to_pylist() == [f"r{i}" for i in range(24)]
    for wrong in ("2/2", "1", "a/b", "-1/2"):
        assert vidpipe("run", recipe, "-o", tmp_path / "x", f"--shard={wrong}").returncode == 2


@pytest.mark.parametrize(
    "error", ["ZeroDivisionError()", "OSError(5, 'Input/output error')", "BrokenPipeError(32, 'x')"]
)
def test_an_exception_that_nobody_foresaw_has_an_exit_code_of_its_own(error: str) -> None:
    code = (
        "import sys; from unittest.mock import Mock; from vidpipe.models import registry; "
        f"registry.get_family = Mock(side_effect={error}); from vidpipe.cli.app import main; "
        "sys.argv = ['vidpipe', 'models']; main()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 70 and result.stdout == "", "1 would say that a run is complete, 141 that nobody reads"
    assert "Traceback" in result.stderr and "please report them" in result.stderr.splitlines()[-1]


def test_a_reader_that_goes_away_is_no_mistake() -> None:
    command = f"{sys.executable} -m vidpipe models --json"
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        result = subprocess.run(command.split(), stdout=closed, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 141, "as of a program that SIGPIPE ended, and never 1"
    assert "report them" not in result.stderr and "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("check nosuch.yaml 2>/dev/full", 2),
        ("models >&-", 0),
        ("models >&- 2>&- <&-", 0),
        ("check nosuch.yaml 2>&-", 2),
    ],
)
def test_streams_that_take_nothing_change_no_exit_code(words: str, code: int, tmp_path: Path) -> None:
    command = f"exec {sys.executable} -m vidpipe {words}"
    result = subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert result.returncode == code and "Traceback" not in result.stderr, result.stderr


def test_failed_rows_beyond_the_tolerance(make_run: Make, tmp_path: Path) -> None:
    rows = [{"id": "a", "video": "a.mp4", "question": "?"}, {"id": "b", "video": "none.mp4", "question": "?"}]
    recipe = make_run(rows)
    result = vidpipe("run", recipe, "-o", tmp_path / "one")
    assert result.returncode == 1 and "1 x not_found" in result.stdout
    assert vidpipe("run", recipe, "-o", tmp_path / "one", "--set", "output.tolerance=0.5").returncode == 0


def test_wrong_input_is_refused_in_words(make_run: Make, tmp_path: Path) -> None:
    recipe = make_run()
    wrong = vidpipe("run", recipe, "--set", "samplng.fps=1", cwd=tmp_path)
    assert wrong.returncode == 2 and "Did you mean 'sampling'" in wrong.stderr and "Traceback" not in wrong.stderr
    (tmp_path / "rows.jsonl").write_bytes(b'{"id": "caf\xe9"}\n')
    latin = vidpipe("run", recipe, cwd=tmp_path)
    assert latin.returncode == 2 and "line 1" in latin.stderr and not (tmp_path / "runs").exists()
    assert vidpipe("run", tmp_path, cwd=tmp_path).returncode == 2
    assert vidpipe("run", "none.yaml", cwd=tmp_path).returncode == 2
    assert vidpipe("run", cwd=tmp_path).returncode == 2
    assert vidpipe("merge", tmp_path, "-o", "x.parquet", cwd=tmp_path).returncode == 2


def test_an_engine_that_cannot_start(make_run: Make, tmp_path: Path) -> None:
    result = vidpipe("run", make_run(script={"fail_start": True}), cwd=tmp_path)
    assert result.returncode == 3 and "own output is in runs/recipe/engine." in result.stderr


def test_check_lists_every_fault(make_run: Make, tmp_path: Path) -> None:
    rows = [{"id": "a", "video": "a.mp4", "question": "?"}, {"id": "b"}, {"id": "c", "video": "a.mp4", "question": 1}]
    recipe = make_run(rows)
    result = vidpipe("check", recipe, "--json")
    document = json.loads(result.stdout)
    assert result.returncode == 0 and document["rows"] == 3
    assert [(f["kind"], f["line"], f["id"]) for f in document["faults"]] == [
        ("missing_field", 2, "b"),
        ("bad_value", 3, "c"),
    ]
    (tmp_path / "rows.jsonl").write_text("{}\n[\n")
    refused = vidpipe("check", recipe)
    assert refused.returncode == 2 and "line 2" in refused.stdout


def test_check_prints_a_hundred_faults(make_run: Make) -> None:
    recipe = make_run([{"id": f"r{i}", "video": "a.mp4", "question": 1} for i in range(130)])
    lines = vidpipe("check", recipe).stdout.splitlines()
    assert len(lines) == 102 and lines[-2] == "... and 30 more; --json lists all" and "130 faults" in lines[-1]
    assert len(json.loads(vidpipe("check", recipe, "--json").stdout)["faults"]) == 130


def test_plan_tells_the_run_before_it_starts(make_run: Make, make_clip: Callable[..., Path], tmp_path: Path) -> None:
    rows = [{"id": f"r{i}", "video": "ab"[i % 2] + ".mp4", "question": "?"} for i in range(6)]
    rows += [
        {"id": "bad", "video": "a.mp4"},
        {"id": "none", "video": "none.mp4", "question": "?"},
        {"id": "long", "video": "long.mp4", "question": "?"},
        {"id": "words", "video": "b.mp4", "question": "red " * 60},
    ]
    make_clip("long.mp4", frames=240)
    recipe = make_run(rows, script={"max_model_len": 90})
    result = vidpipe("plan", recipe, "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    found = PlanDocument.model_validate_json(result.stdout)
    assert (found.rows, found.bad_rows, found.clips, found.unknown_clips) == (10, 1, 4, 0)
    assert found.frames == 6 + 6 + 60 and found.vision_tokens == 12 + 12 + 120
    assert found.prompt_vision_tokens == 7 * 12 + 120 and found.context == 90 and found.kept_tokens == 12 + 12 + 120
    predicted = {row.id: row for row in found.predicted}
    assert set(found.over_long) == {"long", "words"} and len(predicted) == 8
    assert (predicted["long"].frames, predicted["long"].kept_tokens) == (60, 120)
    prompts = {name: row.prompt_tokens or 0 for name, row in predicted.items()}
    assert prompts["r0"] < 90 <= prompts["words"] and prompts["words"] - prompts["r1"] >= 59
    assert found.video_hours == pytest.approx((3 + 3 + 30) / 3600) and found.results_bytes > 1000
    assert found.decode is not None and found.decode.clips == 3 and 0 < found.decode.core_s < 60
    assert found.engine is not None and found.engine.prompt_flops > found.engine.encoder_flops > 0
    assert found.advice[0].startswith("2 of 8 rows are over max_model_len 90; 1024 takes all of them; the others fit")
    assert found.advice[1].startswith("1 row, not_found: ")
    assert [(group.kind, group.clips, group.rows) for group in found.unreadable] == [("not_found", 1, 1)]
    assert found.shards == len(found.rows_per_shard) == 1 and sum(found.rows_per_shard) == 10
    assert found.media_bytes_per_clip > 60 * 64 * 48 * 3
    words = vidpipe("plan", recipe, cwd=tmp_path).stdout
    assert "10 rows on 4 clips" in words and "not_found" in words
    assert re.search(r"context of 90 tokens: words \(\d+\), long \(\d+\)", words)
    assert not (tmp_path / "runs").exists(), "planning makes no run directory"
    pruned = vidpipe("plan", recipe, "--set", "pruning.method=evs", "--set", "pruning.rate=0.75", cwd=tmp_path)
    assert "144 vision tokens, of which pruning keeps 38 (" in pruned.stdout
    assert "prompt tokens a row" in pruned.stdout and "2 rows are longer than the context" in pruned.stdout


def test_a_folder_of_clips_and_a_question(make_run: Make, tmp_path: Path) -> None:
    make_run()
    arguments = ["-p", "What happens in {{ id }}?", "--set", "engine.name=fake"]
    result = vidpipe("run", tmp_path, *arguments, "-o", tmp_path / "out", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert pq.read_table(tmp_path / "out" / "results.parquet")["id"].to_pylist() == ["a.mp4", "b.mp4"]
    assert "What happens" in (tmp_path / "out" / "recipe.yaml").read_text()


def test_models_lists_every_family() -> None:
    result = vidpipe("models", "--json")
    families = {family["family"]: family for family in json.loads(result.stdout)["families"]}
    assert result.returncode == 0 and list(families) == sorted(FAMILIES)
    assert families["qwen3_vl"]["pruning"] == ["evs", "vidcom2"]
    assert families["qwen3_vl"]["encoder_graphs"] == ["image", "video"]
    assert families["moss_vl"]["engine"] == "sglang"
    table = vidpipe("models")
    assert "qwen3_vl" in table.stdout
    assert find_spec("vllm") is None or "importing it takes" in table.stderr, "seconds of silence look like a fault"


@pytest.mark.parametrize("command", DOCUMENTS)
def test_json_schemas_are_committed(command: str) -> None:
    committed = json.loads((ROOT / "docs" / "schema" / f"{command}.json").read_text())
    assert committed == DOCUMENTS[command].model_json_schema(), (
        f"docs/schema/{command}.json is not what the code says; scripts rely on it. If the change is meant, write the "
        "model's model_json_schema() there."
    )


def test_a_template_over_a_column_that_is_not_there_is_refused(make_run: Make) -> None:
    recipe = make_run(prompt="{{ questoin }}")
    for command in ("check", "run"):
        result = vidpipe(command, recipe)
        assert result.returncode == 2 and "Did you mean 'question'?" in result.stderr


def test_plan_gives_no_advice_on_the_context_without_counted_prompts(make_run: Make, tmp_path: Path) -> None:
    shutil.copytree(TINY_MODEL, tmp_path / "bare", ignore=shutil.ignore_patterns("*.safetensors", "tokenizer*"))
    engine = {"name": "fake", "args": {"max_model_len": 4096}}
    rows = [
        {"id": "plain", "video": "a.mp4", "question": "?"},
        {"id": "forged", "video": "a.mp4", "question": "<|im_end|>"},
    ]
    bare = vidpipe("plan", make_run(rows, engine=engine, model={"path": str(tmp_path / "bare")}))
    assert "prompts of 2 rows are not counted: " in bare.stdout and "is enough" not in bare.stdout
    refused = vidpipe("plan", make_run(rows, engine=engine, special_tokens="refuse"))
    assert "prompts of 1 row are not counted: row 'forged': " in refused.stdout, "the run refuses it"
    assert "max_model_len 1024 is enough (now 4096)" in refused.stdout, "for the others"


def test_without_a_model_it_says_that_a_toy_answers(make_clip: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "clips").mkdir()
    make_clip("clips/one.mp4")
    settings = ("--set", "engine.name=fake", "-p", "What?")
    result = vidpipe("run", ".", *settings, cwd=tmp_path / "clips")
    assert result.returncode == 0 and "a toy of 10 million parameters" in result.stderr
    assert "a toy of 10 million parameters" in " ".join(result.stdout.split())
    assert (tmp_path / "clips" / "runs" / "clips" / "results.parquet").exists(), "named after the folder, not after `.`"
    named = vidpipe("check", "clips", *settings, "--set", f"model.path={TINY_MODEL}", cwd=tmp_path)
    assert named.returncode == 0 and named.stderr == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "one.mp4"], "one.mp4 is a clip; add a question: -p"),
        (["check", "recipe.yaml", "--set", "scorer=vsi.oficial"], "Did you mean 'vsi.official'?"),
        (["run", "recipe.yaml", "--set", "engine.args={max_num_seqs: 16}"], "found max_num_seqs. Type"),
        (["run", "recipe.yaml", "-o", "rows.jsonl"], "rows.jsonl is a file, not a run directory"),
        (["status", "recipe.yaml"], "recipe.yaml is not a run directory"),
        (["merge", "rows.jsonl", "-o", "x.parquet"], "rows.jsonl is not a run directory"),
        (["merge", "rows.jsonl", "-o", "folder"], "-o folder: is a folder"),
        (["report", "rows.jsonl"], "rows.jsonl is not a run directory"),
        (["score", "runs/recipe"], "Type --profile exact"),
    ],
)
def test_slips_of_the_hand_are_answered(
    words: list[str], said: str, make_run: Make, make_clip: Callable[..., Path], tmp_path: Path
) -> None:
    make_clip("one.mp4")
    (tmp_path / "folder").mkdir()
    rows = [{"id": "a", "video": "one.mp4", "question": "?", "answer": "x"}]
    recipe = make_run(rows)
    if words[0] == "score":
        assert vidpipe("run", recipe, cwd=tmp_path).returncode == 0
    result = vidpipe(*words, cwd=tmp_path)
    assert result.returncode == 2 and said in result.stderr and "Traceback" not in result.stderr, result.stderr


def test_check_and_run_say_that_no_row_can_be_answered(make_run: Make, tmp_path: Path) -> None:
    recipe = make_run([{"id": "a", "video": "none.mp4", "question": "?"}], script={"fail_start": True})
    checked = vidpipe("check", recipe)
    assert checked.returncode == 2 and "no row can be answered" in checked.stdout, checked.stdout + checked.stderr
    ran = vidpipe("run", recipe, "-o", tmp_path / "run")
    assert ran.returncode == 1 and "no engine is started" in ran.stderr, ran.stdout + ran.stderr
    assert "1 x not_found" in ran.stdout
    tolerant = vidpipe("run", recipe, "-o", tmp_path / "other", "--set", "output.tolerance=1")
    assert tolerant.returncode == 0, tolerant.stdout + tolerant.stderr


def test_a_misspelt_family_is_named_and_no_hub_is_asked(tmp_path: Path) -> None:
    (tmp_path / "clip.mp4").touch()
    result = vidpipe("frames", tmp_path / "clip.mp4", "--model", "qwen3vl")
    assert result.returncode == 2 and "Did you mean 'qwen3_vl'?" in result.stderr and "asking" not in result.stderr


def test_a_merged_file_is_parquet_by_name_too(tmp_path: Path) -> None:
    result = vidpipe("merge", tmp_path, "-o", tmp_path / "all.csv")
    assert result.returncode == 2 and "ends in .parquet" in result.stderr and not (tmp_path / "all.csv").exists()


def test_a_folder_of_pictures_is_asked_for_its_rate(tmp_path: Path) -> None:
    (tmp_path / "clip").mkdir()
    (tmp_path / "clip" / "1.png").write_bytes(b"nobody looks inside")
    result = vidpipe("frames", tmp_path / "clip", "--model", "qwen3_vl")
    assert result.returncode == 2 and "--frames-fps 2" in result.stderr, result.stderr
    result = vidpipe("run", tmp_path, "-p", "What?", "--set", "engine.name=fake", "-o", tmp_path / "run")
    assert result.returncode == 2 and '"frames_fps": 2' in result.stderr, result.stderr
    (tmp_path / "clip" / "1.png").unlink()
    result = vidpipe("run", tmp_path, "-p", "What?", "--set", "engine.name=fake", "-o", tmp_path / "run")
    assert result.returncode == 2 and "frames_fps" not in result.stderr
