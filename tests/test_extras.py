"""What to type for a missing part works where it is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ROOT
from vidpipe import extras


def test_a_checkout_is_installed_from_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert extras.install("cuda") == f"pip install -e '{ROOT}[cuda]'"
    monkeypatch.setattr(extras, "CHECKOUT", tmp_path)  # site-packages: no pyproject.toml beside the package
    assert extras.install("cuda") == "pip install 'vidpipe[cuda]'"


def test_nothing_else_writes_such_a_command() -> None:
    written = {
        path.relative_to(ROOT / "vidpipe").as_posix()
        for path in (ROOT / "vidpipe").rglob("*.py")
        if "vidpipe[" in path.read_text(encoding="utf-8")
    }
    assert written == {"extras.py"}
