"""Scripts for sbatch: compared with stored ones, and read by bash."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import vidpipe
from vidpipe.cluster.jobs import array_sizes
from vidpipe.cluster.script import array_script, merge_script
from vidpipe.cluster.submission import Submission
from vidpipe.errors import RecipeError

STORED = Path(__file__).parent / "stored"
PLAIN = Submission("/data/my recipe.yaml", "/data/runs/r", "r", tasks=1, gpus_per_task=0, python="/opt/venv/bin/python")
FULL = replace(
    PLAIN,
    tasks=64,
    gpus_per_task=2,
    assignments=("generation.max_tokens=3", "prompt=What's in {{ id }}?"),
    time="4:00:00",
    partition="gpu",
    signal_grace_s=300,
    max_parallel=16,
    sbatch=("account=video", "cpus-per-task=16", "exclusive", "comment=for the demo"),
    score=True,
    run_dir="/data/50% of it/r",
)


@pytest.mark.parametrize(("name", "submission"), [("plain", PLAIN), ("full", FULL)])
@pytest.mark.parametrize(("kind", "render"), [("array", array_script), ("merge", merge_script)])
def test_scripts_are_the_stored_ones(name: str, submission: Submission, kind: str, render: object) -> None:
    stored = STORED / f"{name}.{kind}.sh"
    assert callable(render) and render(submission) == stored.read_text(), f"if the change is meant, store it: {stored}"
    subprocess.run(["bash", "-n", stored], check=True)
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", stored], check=True)


def test_the_task_gets_its_arguments_whole(tmp_path: Path) -> None:
    """Bash, a shell script and all, hands over what was asked for."""
    said = tmp_path / "python"
    said.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    said.chmod(0o755)
    script = array_script(replace(FULL, python=str(said), recipe="/a b/$(touch x)'.yaml"))
    shown = subprocess.run(["bash"], input=script, text=True, capture_output=True, check=True, cwd=tmp_path).stdout
    assert shown.splitlines()[3:] == [
        "task", "/a b/$(touch x)'.yaml", "-o", FULL.run_dir, "--set", FULL.assignments[0], "--set", FULL.assignments[1],
    ]  # fmt: skip


@pytest.mark.parametrize("change", [{"sbatch": ("a\nb",)}, {"sbatch": ("--mem=1",)}, {"tasks": 0}, {"name": "a\nb"}])
def test_what_no_script_can_hold(change: dict[str, object]) -> None:
    with pytest.raises(RecipeError):
        replace(PLAIN, **change)  # type: ignore[arg-type]


def test_a_template_of_ones_own(tmp_path: Path) -> None:
    own = tmp_path / "own.j2"
    own.write_text("#!/bin/bash\nmodule load cuda\nexec apptainer exec x.sif {{ command }}\n")
    assert "apptainer exec x.sif /opt/venv" in array_script(replace(PLAIN, template=str(own)))
    own.write_text("{{ comand }}")
    with pytest.raises(RecipeError, match="'comand' is undefined"):
        array_script(replace(PLAIN, template=str(own)))


def test_render_only_prints(make_run: object, tmp_path: Path) -> None:
    assert callable(make_run)
    recipe = make_run()
    result = vidpipe("slurm", "render", recipe, "--tasks", 3, "--gpus-per-task", 1, cwd=tmp_path)
    assert result.returncode == 0 and re.search(r"^#SBATCH --array=0-2$", result.stdout, re.MULTILINE), result.stderr
    assert "#SBATCH --gres=gpu:1" in result.stdout and not (tmp_path / "runs").exists()
    wanted = vidpipe("slurm", "render", recipe, "--set", "engine.name=vllm", "--set", "engine.data_parallel=2")
    assert "#SBATCH --gres=gpu:2" in wanted.stdout, "as many GPUs as the recipe's engines take"
    assert vidpipe("slurm", "render", recipe, "--set", "engine.nam=x").returncode == 2


@given(st.integers(1, 5000), st.integers(1, 1001))
def test_arrays_are_few_and_even(tasks: int, most: int) -> None:
    sizes = array_sizes(tasks, most)
    assert sum(sizes) == tasks and max(sizes) <= most and len(sizes) == -(-tasks // most) and len(Counter(sizes)) <= 2


def test_without_slurm_it_says_so(make_run: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(make_run)
    recipe = make_run()
    monkeypatch.setenv("PATH", str(tmp_path))
    result = vidpipe("slurm", "submit", recipe, cwd=tmp_path)
    assert result.returncode == 2 and "Slurm cluster" in result.stderr
    assert vidpipe("slurm", "cancel", tmp_path / "runs" / "recipe").returncode == 2


def test_without_a_controller_it_says_what_to_type(
    make_run: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words of Slurm's scontrol: where nothing listens, where there is no slurm.conf, and of another fault."""
    for words, advised in (
        ("slurm_load_ctl_conf error: Unable to contact slurm controller (connect failure)", True),
        ("fatal: Could not establish a configuration source", True),
        ("slurm_load_ctl_conf error: Access/permission denied", False),
    ):
        scontrol = tmp_path / "scontrol"
        scontrol.write_text(f"#!/bin/sh\necho 'scontrol: {words}' >&2\nexit 1\n")
        scontrol.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
        result = vidpipe("slurm", "submit", make_run(), "-o", tmp_path / "run")
        said = result.stderr
        assert words in said and ("vidpipe slurm render" in said) == advised, said
        assert result.returncode == 2
