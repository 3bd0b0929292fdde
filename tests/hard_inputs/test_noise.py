"""Whatever bytes come, the answer is frames or a MediaError with a kind, never another exception."""

from __future__ import annotations

import random
from pathlib import Path
from typing import get_args

import pytest

from vidpipe.errors import MediaError, MediaKind
from vidpipe.video.decode import decode_frames
from vidpipe.video.probe import probe

INPUTS = sorted(p for p in (Path(__file__).parent / "video").iterdir() if 0 < p.stat().st_size < 20_000)


def mutate(content: bytearray, dice: random.Random) -> None:
    """Change, remove or insert bytes at a few places, half of them near the start."""
    for _ in range(dice.choice((1, 3, 10, 40))):
        at = dice.randrange(len(content) if dice.random() < 0.5 else min(len(content), 2500))
        how = dice.randrange(3)
        if how == 0:
            content[at] = dice.randrange(256)
        elif how == 1:
            del content[at : min(at + dice.randrange(1, 50), len(content) - 20)]
        else:
            content[at:at] = dice.randbytes(dice.randrange(1, 20))


@pytest.mark.parametrize("source", INPUTS, ids=lambda path: path.name)
def test_mutated(source: Path, tmp_path: Path) -> None:
    for seed in range(8):
        dice = random.Random(f"{source.name} {seed}")
        content = bytearray(source.read_bytes())
        if len(content) > 40:
            mutate(content, dice)
        path = tmp_path / f"{seed}{source.suffix}"
        path.write_bytes(content)
        try:
            timeline = probe(path).timeline
            frames = decode_frames(path, [0, len(timeline) - 1], timeline=timeline)
        except MediaError as error:
            assert error.kind in get_args(MediaKind)
        else:
            assert len(frames.indices) + frames.missing == 2
