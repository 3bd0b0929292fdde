"""Reading and making pages of runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from vidpipe.report.histogram import histogram
from vidpipe.report.page import Distribution, Page


def data_of(page: Path) -> dict[str, Any]:
    """Rows and clips of a page, as its script reads them."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found.group(1))
    return data


def row_of(number: int, **values: Any) -> dict[str, Any]:
    """A row as the page reads it."""
    return {
        "id": f"row {number}", "clip": None, "name": f"clip {number // 5}.mp4", "status": "ok", "kind": None,
        "error": None, "question": f"What is {number}?", "options": [], "text": f"answer {number % 7}",
        "answer": f"answer {number % 5}",
        "mark": "right" if number % 7 == number % 5 else "wrong", "score": float(number % 7 == number % 5),
        "profile": "exact match", "tokens_in": 100 + number % 50, "tokens_out": 3, "vision": [64, 64], "frames": 16,
        "seconds": {"engine": 0.5}, "flags": [], "finish": "stop", "attempt": 1, "prompt": None, "prompt_note": "",
        "columns": {}, **values,
    }  # fmt: skip


def page_with(rows: list[dict[str, Any]], clips: list[dict[str, Any]] | None = None) -> Page:
    """A page of these rows and little else."""
    return Page(
        "run", "A run.", "today", False, [(str(len(rows)), "rows", "")], [], "Not scored.", [], [], [],
        [Distribution("frames a row", "frames", histogram([1, 2, 3]) or pytest.fail())], [], [("engine", "fake 1")], "",
        [], rows, clips or [],
    )  # fmt: skip
