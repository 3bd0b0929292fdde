"""The house in order: what a reader opens is short."""

from __future__ import annotations

from tests.conftest import ROOT

MOST_LINES = 400


def test_no_module_is_longer_than_a_sitting() -> None:
    modules = [path for folder in ("vidpipe", "tests") for path in (ROOT / folder).rglob("*.py")]
    lengths = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8").count("\n") for path in modules}
    assert len(lengths) > 500
    assert {path: lines for path, lines in lengths.items() if lines > MOST_LINES} == {}
