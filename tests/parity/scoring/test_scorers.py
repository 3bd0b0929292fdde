"""Every scorer against the vectors computed with the upstream functions, through the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.parity.test_trace import traced
from tests.parity.vectors import GOLDEN, Case
from vidpipe.cli.trace_kinds import KINDS

SCORING = GOLDEN / "scoring"
FILES = sorted(SCORING.glob("*.json"))


def scoring_cases(path: Path) -> list[Case]:
    rows = json.loads(path.read_text())["rows"]
    return [
        Case(row["id"], {key: value for key, value in row.items() if key not in ("id", "expected")}, row["expected"])
        for row in rows
    ]


def equal(a: Any, b: Any) -> bool:
    """Equal values; floats to 1e-9, and of an upstream error only its type."""
    if isinstance(a, dict) and isinstance(b, dict):
        if isinstance(error := b.get("error"), str):
            b = {**b, "error": error.split(":")[0]}
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == pytest.approx(b, rel=1e-9, abs=1e-9)
    return type(a) is type(b) and bool(a == b)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scorer(path: Path) -> None:
    assert path.stem in KINDS
    cases = scoring_cases(path)
    outputs = traced(path.stem, cases)
    different = []
    for case in cases:
        output = {key: value for key, value in outputs[case.id].items() if key in case.expected}
        if not equal(output, case.expected):
            different.append(f"{case.input!r}:\n{output}\n{case.expected}")
    assert not different, f"{len(different)} of {len(cases)}; first {different[0]}"
