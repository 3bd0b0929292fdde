"""Every command line in README.md and docs/ is run as it stands, in a folder that has what the pages speak of.

What a test cannot have is put in its place: a checkpoint on the hub, file systems of a cluster, Slurm's own commands,
an engine that takes minutes. A page that names a new placeholder fails here until `PLACES` knows it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from tests.benchmarks.test_import import vsi_records, write_source
from tests.conftest import ROOT, TINY_MODEL, vidpipe, write_clip, write_run
from vidpipe.cli.app import app

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"\s*(?:srun\b.* )?vidpipe [a-z]")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_ENGINE = {"run", "check", "plan"}
SLURM = {"sbatch": "echo 77", "squeue": "echo '{\"jobs\": []}'", "scancel": "true", "scontrol": "true", "sacct": "true"}


def commands(page: Path) -> list[str]:
    """Command lines of a page's shell blocks, continued lines joined."""
    found = BLOCK.findall(page.read_text())
    text = "".join(text for language, text in found if language == "sh").replace("\\\n", " ")
    return [line.strip() for line in text.splitlines() if COMMAND.match(line)]


DOCUMENTED = {str(page.relative_to(ROOT)): found for page in PAGES if (found := commands(page))}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clips, pictures, a recipe, a published file and two finished runs, by the names that the pages use."""
    folder = tmp_path_factory.mktemp("docs")
    write_run(folder, script={"text": "1"})
    write_clip(folder / "clip.mp4")
    (folder / "FOLDER").mkdir()
    write_clip(folder / "FOLDER" / "one.mp4")
    (folder / "PICTURES").mkdir()
    for name in ("1.png", "2.png"):
        shutil.copy(ROOT / "docs" / "pictures" / "report.png", folder / "PICTURES" / name)
    records = vsi_records(3)
    for record in records:
        clip = folder / "data" / "vsi" / record["dataset"] / f"{record['scene_name']}.mp4"
        clip.parent.mkdir(parents=True, exist_ok=True)
        write_clip(clip, frames=8)
    write_source(folder, records, "test.parquet")
    (folder / "recipes").mkdir()
    for recipe in (ROOT / "recipes").glob("*.yaml"):
        values = yaml.safe_load(recipe.read_text()) | {"manifest": "../rows.jsonl", "media_root": ".."}
        (folder / "recipes" / recipe.name).write_text(yaml.safe_dump(values))
    return folder


@pytest.fixture(autouse=True)
def _there(world: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In that folder, with a Slurm that takes everything."""
    (world / "bin").mkdir(exist_ok=True)
    for name, script in SLURM.items():
        (world / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (world / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{world / 'bin'}:{os.environ['PATH']}")
    monkeypatch.chdir(world)
    yield


def typed(words: Sequence[str]) -> tuple[int, str]:
    """Exit code and output; in this process, which is faster, but for runs: they take over its file descriptors."""
    if words[0] == "run":
        process = vidpipe(*words)
        return process.returncode, process.stdout + process.stderr
    result = CliRunner().invoke(app, words)
    return result.exit_code, f"{result.output}\n{result.exception!r}"


def arguments_of(command: str, world: Path) -> list[str]:
    """What `vidpipe` gets, with the test's things in the place of what stands for the reader's."""
    words = shlex.split(command.partition(" 2> ")[0], comments=True)
    words = words[words.index("vidpipe") + 1 :]
    if "--frames-fps" in words:
        words = ["PICTURES" if word == "FOLDER" else word for word in words]
    places = {
        "FILE": "test.parquet",
        "DIR": "data/vsi",
        "RUN_DIR": "runs/vsi",
        "RUN_A": "runs/vsi",
        "RUN_B": "runs/vsi",
        "Qwen/Qwen3-VL-8B-Instruct": str(TINY_MODEL),
        "ray:10.0.0.1:6379": "ray",
        "engine.data_parallel=8": "engine.data_parallel=1",
        "feed.workers=200": "feed.workers=2",
        "model.path=...": f"model.path={TINY_MODEL}",
        "model.path=Qwen/Qwen3-VL-8B-Instruct": f"model.path={TINY_MODEL}",
    }
    words = [places.get(word, word) for word in words]
    words = [
        f"{world}{word}" if word.startswith(("/data/", "/shared/")) or word == "/shared" else word for word in words
    ]
    if words[0] in WITH_ENGINE and not any(word.startswith("engine.name=") for word in words):
        script = json.dumps({"text": "1"})
        words += ["--set", f"model.path={TINY_MODEL}", "--set", "engine.name=fake", "--set", f"engine.args={script}"]
    return words


@pytest.fixture(scope="module")
def _runs(world: Path) -> None:
    """Finished runs, for the pages that begin with one."""
    engine = ["--set", f"model.path={TINY_MODEL}", "--set", "engine.name=fake", "--set", 'engine.args={"text": "1"}']
    source, media, out = map(str, (world / "test.parquet", world / "data" / "vsi", world / "scored"))
    for words in (
        ["run", str(world / "recipe.yaml"), "-o", str(world / "runs" / "recipe")],
        ["import", "vsi", "--src", source, "--media-root", media, "-o", out],
        ["run", f"{out}/recipe.yaml", "-o", str(world / "runs" / "vsi"), *engine],
    ):
        code, output = typed(words)
        assert code == 0, output


@pytest.mark.usefixtures("_runs")
@pytest.mark.parametrize("page", DOCUMENTED)
def test_every_command_of_a_page_works_as_typed(page: str, world: Path) -> None:
    for words, command in {tuple(arguments_of(command, world)): command for command in DOCUMENTED[page]}.items():
        code, output = typed(words)
        assert code in ({0, 2} if words[0] == "doctor" else {0}), f"{command}\n{words}\n{output}"


def test_no_command_stands_in_a_block_that_is_not_marked_as_one() -> None:
    assert len(DOCUMENTED["README.md"]) > 15
    for page in PAGES:
        for language, text in BLOCK.findall(page.read_text()):
            assert language == "sh" or not re.search(rf"^{COMMAND.pattern}", text, re.MULTILINE), (
                f"{page.name}:\n{text}"
            )
