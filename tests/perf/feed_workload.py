"""The workload of `feed.py`: clips of several sizes, codecs and clocks, some broken; questions, some too long."""

from __future__ import annotations

import json
import random
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np

from vidpipe.job.host import cores

NOISE = 2
CODECS = ("libx264", "libx265")
QUESTION = "Question {number}: what happens to the shapes?"


@dataclass(frozen=True)
class Size:
    """How much of everything."""

    clips: int
    questions: int
    seconds: int
    sizes_wh: tuple[tuple[int, int], ...]
    sample_clips: int
    """Clips of the arms that read files themselves."""
    fresh_sample_clips: int


FULL = Size(40, 18, 20, ((854, 480), (1920, 1080)), 8, 24)
SMALL = Size(8, 6, 8, ((160, 120), (320, 240)), 4, 2)


def make(folder: Path, size: Size, repeats: int) -> None:
    """Write clips and manifests into `folder`: `grouped.jsonl`, `rows.jsonl` (the same, shuffled), `fresh.jsonl`.

    `fresh` has one question a clip and three times the repeats. 5 % of the clips (at least one) are cut before
    their index, 2 % of the rows (at least one) are longer than any context. Repeat r asks about
    the clips from r tenths of a second on, so that no cache of an engine knows them. `sample.jsonl` and
    `fresh-sample.jsonl` are of whole clips, each of its own.
    """
    folder.mkdir(parents=True, exist_ok=True)
    chance = random.Random(0)
    names = [f"clip_{i:02d}.mp4" for i in range(size.clips)]
    corrupt = set(names[:: max(1, round(1 / 0.05))][: max(1, size.clips // 20)])
    with ProcessPoolExecutor(cores()) as pool:
        # The largest of the slow codec first.
        order = sorted(range(len(names)), key=lambda i: (-_shape(size, i)[0][0], -CODECS.index(_shape(size, i)[1])))
        missing = [i for i in order if not (folder / names[i]).exists()]
        for i in pool.map(_write, [folder / names[i] for i in missing], [size] * len(missing), missing):
            if names[i] in corrupt:
                path = folder / names[i]
                path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    rows = _rows(names, size.questions, repeats)
    for row in chance.sample(rows, max(1, len(rows) // 50)):
        row["question"] += " and why" * 40_000
    _dump(folder / "grouped.jsonl", rows)
    fresh = _rows(names, 1, 3 * repeats)
    _dump(folder / "fresh.jsonl", fresh)
    sound = [name for name in names if name not in corrupt]
    first, last = sound[: size.sample_clips], sound[-size.fresh_sample_clips :]
    sample = [row for row in rows if "clip_start" not in row and row["video"] in first]
    _dump(folder / "sample.jsonl", [row for row in sample if len(row["question"]) < 1000])
    _dump(folder / "fresh-sample.jsonl", [row for row in fresh if "clip_start" not in row and row["video"] in last])
    chance.shuffle(rows)
    _dump(folder / "rows.jsonl", rows)


def _rows(names: list[str], questions: int, repeats: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for repeat in range(repeats):
        for name in names:
            for number in range(questions):
                row: dict[str, Any] = {
                    "id": f"{repeat:03d}-{name}-{number:02d}",
                    "video": name,
                    "question": QUESTION.format(number=number),
                }
                if repeat:
                    row["clip_start"] = repeat / 10
                rows.append(row)
    return rows


def _shape(size: Size, number: int) -> tuple[tuple[int, int], str]:
    return size.sizes_wh[number % len(size.sizes_wh)], CODECS[number // 2 % len(CODECS)]


def _write(path: Path, size: Size, number: int) -> int:
    """Moving blocks before a moving texture, with the noise of a camera; every third clip has a variable rate.

    Such that the bit rate is that of ordinary footage (1080p: 5 to 10 Mbit/s): it decides what decoding costs.
    Returns the clip's number.
    """
    (width, height), codec = _shape(size, number)
    rng = np.random.default_rng(number)
    options = {
        "preset": "ultrafast",
        "threads": "1",
        **({"x265-params": "log-level=none:pools=none"} if codec == "libx265" else {}),
    }
    size_hw = (height * 3 // 2, width)  # luma, and half as much chroma below
    coarse = rng.integers(60, 160, (size_hw[0] // 40, width // 40), np.uint8)
    smooth = cv2.resize(coarse, (width, size_hw[0]), interpolation=cv2.INTER_CUBIC)
    texture = smooth + rng.integers(0, NOISE, size_hw, np.uint8)
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=25, options=options)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.time_base = Fraction(1, 1000)
        stream.codec_context.time_base = Fraction(1, 1000)
        at_ms = 0
        for i in range(25 * size.seconds):
            pixels = np.roll(texture, 3 * i, axis=1)
            x = (i * 4 + number * 20) % max(1, width - width // 4)
            pixels[height // 3 : height // 2, x : x + width // 4] = rng.integers(100, 255)
            frame = av.VideoFrame.from_ndarray(pixels, format="yuv420p")
            frame.pts, frame.time_base = at_ms, Fraction(1, 1000)
            at_ms += 20 + 40 * (i % 2) if number % 3 == 2 else 40
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return number


def _dump(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
