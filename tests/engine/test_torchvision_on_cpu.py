"""The cure is run for real in fresh processes; here PyPI's torchvision stands beside a CPU torch."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from vidpipe.engine.torchvision_on_cpu import CHILD_SITE


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": "", **environment}  # other tests may have brought the cure there
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)


needs_cure = pytest.mark.skipif(
    not metadata.version("torch").endswith("+cpu") or metadata.version("torchvision").endswith("+cpu"),
    reason="torch and torchvision fit each other here: there is nothing to cure",
)


@needs_cure
def test_torchvision_imports_only_with_the_cure() -> None:
    assert "torchvision::nms" in python("import torchvision").stderr
    cured = python(
        "from vidpipe.engine import torchvision_on_cpu as cure; cure.install(); cure.install()\n"
        "import importlib.util; importlib.util.find_spec('torchvision'); cure.install()\n"
        "import torchvision.transforms.v2\n"
        "assert importlib.util.find_spec('torchcodec') is None and importlib.util.find_spec('torchaudio') is None"
    )
    assert cured.returncode == 0, cured.stderr


@needs_cure
def test_the_cure_reaches_grandchildren() -> None:
    code = (
        "from vidpipe.engine import torchvision_on_cpu as cure; cure.reach_children(); cure.reach_children()\n"
        "import subprocess, sys, os\n"
        "assert os.environ['PYTHONPATH'].count('child_site') == 1\n"
        "sys.exit(subprocess.run([sys.executable, '-c', 'import torchvision']).returncode)"
    )
    result = python(code)
    assert result.returncode == 0, result.stderr


@needs_cure
def test_a_child_that_installs_it_once_more() -> None:
    code = "from vidpipe.engine import torchvision_on_cpu as cure; cure.install(); import torchvision.transforms.v2"
    result = python(code, PYTHONPATH=str(CHILD_SITE))
    assert result.returncode == 0, result.stderr


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    code = "import sys; sys.exit('torch' in sys.modules or 'vidpipe' in sys.modules)"
    assert python(code, PYTHONPATH=str(CHILD_SITE)).returncode == 0


def test_the_hidden_sitecustomize_runs_too(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.hidden_one = 7\n")
    result = python("print(hidden_one)", PYTHONPATH=os.pathsep.join([str(CHILD_SITE), str(tmp_path)]))
    assert result.stdout == "7\n", result.stderr
