"""The script for users with real weights, on the two checkpoints that can be had here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.checkpoints import ernie45_vl, llava_onevision2, minimax_m3, minimax_m3_hf
from tests.conftest import ROOT, TINY_MODEL
from tests.gpu.real_checkpoint import ONE_STEP, Finding, verdict
from vidpipe.engine import vllm_environment
from vidpipe.errors import EngineError

pytestmark = pytest.mark.engine

try:
    vllm_environment.installed()
except EngineError:
    pytest.skip("vLLM is not installed here", allow_module_level=True)


def check(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.gpu.real_checkpoint", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=600, check=False)


def test_a_trained_checkpoint() -> None:
    done = check(TINY_MODEL)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("prompt equal, pixels equal") == 5 and "verdict: GOOD" in done.stdout


@pytest.mark.parametrize("family", [llava_onevision2, ernie45_vl], ids=["llava_onevision2", "ernie45_vl"])
def test_a_checkpoint_with_code_of_its_own(family: ModuleType, tmp_path: Path) -> None:
    family.make(tmp_path)
    refused = check(tmp_path)
    assert refused.returncode == 2 and "trust_remote_code" in refused.stdout
    (tmp_path / "model.safetensors").unlink()  # not needed for prompts
    done = check(tmp_path, "--trust-remote-code", "--prompts-only")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("prompt equal, pixels equal") == 5 and "answer" not in done.stdout


def test_a_checkpoint_of_transformers_own_class(tmp_path: Path) -> None:
    minimax_m3_hf.make(tmp_path)
    done = check(tmp_path, "--prompts-only")  # its model needs CUDA
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("prompt equal, pixels equal") == 5


def test_a_checkpoint_without_a_processor_of_its_own(tmp_path: Path) -> None:
    minimax_m3.make(tmp_path)
    done = check(tmp_path, "--prompts-only")
    assert done.returncode == 2 and "no processor" in done.stdout


@pytest.mark.parametrize(
    ("first_difference", "pixels_off"), [(7, 0.0), (None, 2 * ONE_STEP), (None, float("inf")), (None, 0.0)]
)
def test_one_wrong_clip_is_a_bad_verdict(
    first_difference: int | None, pixels_off: float, capsys: pytest.CaptureFixture[str]
) -> None:
    right = [Finding(str(n), 10, None, 0.0, None) for n in range(4)]
    code = verdict([*right, Finding("last", 10, first_difference, pixels_off, None)], answered=False)
    assert code == (0 if first_difference is None and pixels_off == 0 else 1)
    assert ("GOOD" in capsys.readouterr().out) is (code == 0)
