"""The packages as a user gets them: built, checked, and the wheel installed where nothing else is."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT, write_clip
from vidpipe import __version__


def call(*command: object, cwd: Path | None = None) -> str:
    result = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Source package, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    call(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    return folder


def test_the_packages_are_whole(packages: Path) -> None:
    call(sys.executable, "-m", "twine", "check", "--strict", *packages.iterdir())
    (wheel,) = packages.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    tracked = call("git", "ls-files", "vidpipe", cwd=ROOT).split()
    assert set(tracked) <= names and not any(name.startswith("tests/") for name in names)
    (source,) = packages.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        top = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert {"vidpipe", "recipes", "tests", "docs", "README.md", "LICENSE", "pyproject.toml"} <= top


def test_the_wheel_alone_shows_frames_and_says_how_to_get_an_engine(packages: Path, tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "clip.mp4")
    venv.create(tmp_path / "clean", with_pip=True)
    binaries = tmp_path / "clean" / "bin"
    (wheel,) = packages.glob("*.whl")
    call(binaries / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    assert call(binaries / "vidpipe", "--version", cwd=tmp_path) == f"vidpipe {__version__}\n"
    found = json.loads(call(binaries / "vidpipe", "frames", clip, "--model", "qwen3_vl", "--json", cwd=tmp_path))
    assert found["times_s"][0] == 0.0
    families = json.loads(call(binaries / "vidpipe", "models", "--json", cwd=tmp_path))["families"]
    assert {"qwen3_vl", "moss_vl"} <= {family["family"] for family in families}
    (tmp_path / "config.json").write_text('{"model_type": "qwen3_vl", "architectures": []}')
    run = [binaries / "vidpipe", "run", clip, "-p", "What?", "--set", f"model.path={tmp_path}"]
    result = subprocess.run(list(map(str, run)), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 3 and "pip install 'vidpipe[cuda]'" in result.stderr, result.stderr
