"""Counts in words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.conftest import vidpipe
from vidpipe.wording import counted


def test_one_is_no_plural() -> None:
    assert [counted(n, "row") for n in (0, 1, 2)] == ["0 rows", "1 row", "2 rows"]
    assert counted(1, "reply", "replies") == "1 reply" and counted(3, "row is", "rows are") == "3 rows are"


def test_no_command_says_1_rows(make_run: Callable[..., Path], tmp_path: Path) -> None:
    recipe = make_run([{"id": "a", "video": "a.mp4", "question": "?", "answer": "fake"}])
    run = tmp_path / "run"
    commands = (
        ("check", recipe),
        ("plan", recipe),
        ("run", recipe, "-o", run),
        ("status", run),
        ("score", run, "--profile", "exact"),
        ("compare", run, run, "--profile", "exact"),
        ("merge", run, "-o", tmp_path / "all.parquet"),
        ("report", run, "-o", tmp_path / "page.html"),
    )
    for command in commands:
        result = vidpipe(*command)
        assert result.returncode == 0, result.stderr
        for words in ("1 rows", "1 clips", "1 shards", "1 faults", "1 processes"):
            assert f" {words}" not in f" {result.stdout} {result.stderr}".replace("\n", " "), (command, result.stdout)
