"""Golden vectors: inputs and outputs of upstream functions, one JSON file a function."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent / "golden"


@dataclass(frozen=True)
class Case:
    id: str
    input: dict[str, Any]
    expected: dict[str, Any]

    def __str__(self) -> str:
        return self.id


def cases(name: str) -> list[Case]:
    document = json.loads((GOLDEN / f"{name}.json").read_text())
    return [Case(case["id"], case["input"], case["expected"]) for case in document["cases"]]
