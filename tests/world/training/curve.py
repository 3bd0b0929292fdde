"""The curve of a training as a picture: `python -m tests.world.training.curve CHECKPOINT/training.jsonl OUT.svg`.

Shares of right answers on the test world over steps, unpruned and, where the family can, pruned, and of the questions
for a time.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

WIDTH, HEIGHT, LEFT, TOP = 640, 320, 48, 16
LINES = {
    "all": ("unpruned", "all", "#1f5fbf"),
    "when does it appear": ("unpruned", "time", "#c0392b"),
    "EVS 0.5": ("evs 0.5", "all", "#2e8b57"),
    "VidCom2 0.5": ("vidcom2 0.5", "all", "#8e44ad"),
}
"""Name -> arm, kind and colour."""


def draw(log: Sequence[Mapping[str, Any]]) -> str:
    """The picture, from the lines of a log."""
    points = [line for line in log if "test" in line]
    last = max(line["step"] for line in points)
    right, bottom = WIDTH - 150, HEIGHT - 36

    def place(step: int, share: float) -> str:
        return f"{LEFT + (right - LEFT) * step / last:.1f},{bottom - (bottom - TOP) * share:.1f}"

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif">']
    parts.append(f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>')
    for tenths in range(0, 11, 2):
        y = bottom - (bottom - TOP) * tenths / 10
        parts.append(f'<path d="M{LEFT} {y:.1f}H{right}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" font-size="11" text-anchor="end">{10 * tenths} %</text>')
    parts.append(f'<text x="{right}" y="{HEIGHT - 14}" font-size="11" text-anchor="end">{last} steps</text>')
    drawn = {name: line for name, line in LINES.items() if line[0] in points[0]["test"]}
    for number, (name, (arm, kind, colour)) in enumerate(drawn.items()):
        way = " ".join(place(line["step"], line["test"][arm].get(kind, 0.0)) for line in points)
        parts.append(f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        parts.append(f'<text x="{right + 8}" y="{TOP + 14 + 18 * number}" font-size="12" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    lines = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    Path(sys.argv[2]).write_text(draw(lines))
