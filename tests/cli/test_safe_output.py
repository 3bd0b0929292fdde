"""What is printed commands no terminal, whoever wrote it."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.live import Live
from rich.text import Text

from tests.conftest import vidpipe
from vidpipe.cli.safe_output import safe, visible

CLIPBOARD = "\x1b]52;c;ZXZpbA==\x07"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (CLIPBOARD, "\\x1b]52;c;ZXZpbA==\\x07"),
        ("\x1b[2J\x1b[H", "\\x1b[2J\\x1b[H"),
        ("\x9b31m", "\\x9b31m"),
        ("a\tb\r\nc é 視", "a\tb\r\nc é 視"),
        ("\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m"),
        ("ends in \x1b", "ends in \\x1b"),
    ],
)
def test_what_is_left(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_no_other_sequence_is_left(text: str) -> None:
    left = visible(text)
    assert visible(left) == left
    assert all(char.isprintable() or char in "\t\r\n\x1b" or ord(char) > 0x9F for char in left)


def test_the_display_of_a_run_passes_unchanged() -> None:
    plain, kept = io.StringIO(), io.StringIO()
    for stream, file in ((plain, plain), (kept, safe(kept))):
        console = Console(file=file, force_terminal=True, width=40, legacy_windows=False)
        with Live(console=console, auto_refresh=False, transient=True) as live:
            live.update(Text("two\nlines", style="green"), refresh=True)
            console.print("a warning above")
        assert stream.getvalue()
    assert kept.getvalue() == plain.getvalue()


def test_a_file_name_and_an_answer_cannot_set_the_clipboard(make_run: Callable[..., Path], tmp_path: Path) -> None:
    rows = [
        {"id": "gone", "video": f"{CLIPBOARD}.mp4", "question": "?"},
        {"id": "asked", "video": "a.mp4", "question": f"what {CLIPBOARD}", "answer": CLIPBOARD},
    ]
    recipe = make_run(rows, script={"text": f"this {CLIPBOARD}"})
    for command in (("check", recipe), ("run", recipe, "-o", tmp_path / "run"), ("status", tmp_path / "run")):
        result = vidpipe(*command)
        printed = result.stdout + result.stderr
        assert "\x1b]" not in printed and "\x07" not in printed
        assert "\\x1b]" in printed
