"""Names in `engine.args`, held against the engine's source without importing it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import vidpipe
from vidpipe.engine.argument_names import argument_names, refuse_unknown_arguments
from vidpipe.errors import CapabilityError

SOURCE = """
from dataclasses import dataclass

@dataclass
class EngineArgs{bases}:
    model: str = "m"
    max_model_len: int | None = None
    other = 3

    def method(self) -> None:
        local: int = 1
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, bases: str = "") -> None:
    """A vLLM that cannot be imported, first on the path."""
    (folder / "vllm" / "engine").mkdir(parents=True)
    (folder / "vllm" / "__init__.py").write_text("raise AssertionError('imported')")
    (folder / "vllm" / "engine" / "arg_utils.py").write_text(SOURCE.format(bases=bases))
    for name in [name for name in sys.modules if name.partition(".")[0] == "vllm"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(folder))


def test_names_are_read_without_an_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)
    assert argument_names() == {"model", "max_model_len"}
    refuse_unknown_arguments(["max_model_len"])
    with pytest.raises(CapabilityError, match=r"engine\.args\.max_model_length: .* Did you mean 'max_model_len'\?"):
        refuse_unknown_arguments(["max_model_len", "max_model_length"])
    with pytest.raises(CapabilityError, match=r"engine\.args\.xyz: .*Remove the key"):
        refuse_unknown_arguments(["xyz"])


def test_what_cannot_be_read_is_left_to_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, bases="(Other)")
    assert argument_names() is None
    refuse_unknown_arguments(["anything"])


def test_they_are_those_of_the_installed_vllm() -> None:
    pytest.importorskip("vllm")
    code = (
        "import dataclasses; from vidpipe.engine import torchvision_on_cpu; torchvision_on_cpu.install()\n"
        "from vllm import EngineArgs; print(*(field.name for field in dataclasses.fields(EngineArgs) if field.init))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert argument_names() == set(said.splitlines()[-1].split())


def test_check_and_run_refuse_a_name_before_anything_starts(make_run: Callable[..., Path], tmp_path: Path) -> None:
    if argument_names() is None:
        pytest.skip("no vLLM is installed here")
    recipe = make_run(engine={"name": "vllm", "args": {"max_model_length": 4096}})
    for command in (("check", recipe), ("run", recipe, "-o", tmp_path / "run")):
        result = vidpipe(*command)
        assert result.returncode == 2 and "Did you mean 'max_model_len'?" in result.stderr, result.stderr
    assert not (tmp_path / "run").exists()
