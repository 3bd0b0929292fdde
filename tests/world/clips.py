"""Clips of the test world as files, with manifests of questions: `python -m tests.world.clips -o FOLDER --help`.

A manifest for each family that has a model of the world: the answers are what it can know from the frames that vidpipe
samples for it at the row's rate.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import torch

from tests.world.pictures import paint, strokes
from tests.world.questions import RULES, Question, ask
from tests.world.scene import SAMPLING_RATES, SIZES_WH, Scene, World, draw_scene
from tests.world.view import EYES, QWEN3_VL, Eye, View, look

FPS = 2.0
"""Rate at which the demo is sampled; vidpipe's and Qwen3-VL's default."""
MOST_FRAMES = 240
ATONCE = 32
"""Frames drawn in one go."""


def write_clip(path: Path, scene: Scene, crf: int, seed: int) -> None:
    """The scene as an H.264 file."""
    torch.manual_seed(seed)  # the noise
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=Fraction(scene.fps))
        stream.width, stream.height, stream.pix_fmt = scene.width, scene.height, "yuv420p"
        stream.options = {"crf": str(crf), "preset": "slow"}
        for first in range(0, scene.frames, ATONCE):
            times_s = [index / scene.fps for index in range(first, min(first + ATONCE, scene.frames))]
            what = strokes([View(scene, tuple(times_s), ())], ATONCE)
            for pixels in paint(what, scene.width, scene.height)[0, : len(times_s)]:
                frame = av.VideoFrame.from_ndarray(pixels.permute(1, 2, 0).byte().numpy(), format="rgb24")
                container.mux(stream.encode(frame))
        container.mux(stream.encode())


def scenes(clips: int, rates: tuple[float, ...], most_pairs: int, seed: int) -> Iterator[Scene]:
    """Test scenes: every size in turn, short and long ones, with something to ask about."""
    rng = random.Random(f"clips {seed}")
    for number in range(clips):
        size = SIZES_WH[number % len(SIZES_WH)]
        few, many = ((2, 5), (6, 10), (11, 16))[number % 3]
        world = World(True, (size,), (min(few, most_pairs), min(many, most_pairs)), sampling_rates=rates)
        while True:
            scene = draw_scene(world, rng)
            if scene.frames <= MOST_FRAMES * max(1.0, 2.0 / rates[0]) and len(scene.things) > 1:
                yield scene
                break


def questions(view: View, count: int, asked: Counter[str], rng: random.Random) -> list[Question]:
    """Up to `count` different questions, of the kinds that were asked least so far first."""
    found: dict[str, Question] = {}
    for kind in sorted(RULES, key=lambda kind: (asked[kind], rng.random())):
        question = ask(view, kind, rng)
        if question is not None and len(found) < count:
            found[question.text] = question
            asked[kind] += 1
    return list(found.values())


def rows_file(eye: Eye) -> str:
    """Name of a family's manifest."""
    return "rows.jsonl" if eye is QWEN3_VL else f"rows_{eye.family.name}.jsonl"


def write_rows(folder: Path, shown: Sequence[Scene], eye: Eye, rows: int, own_rates: bool, seed: int) -> None:
    """A family's manifest: up to `rows` questions on each scene's clip."""
    rng, asked = random.Random(f"questions {seed}"), Counter[str]()
    lines: list[dict[str, Any]] = []
    for number, scene in enumerate(shown):
        own = {f"sampling.{key}": value for key, value in {"fps": scene.sampling_fps, **eye.asked}.items()}
        for place, question in enumerate(questions(look(scene, eye), rows, asked, rng), 1):
            about = {"question": question.text, "answer": question.answer, "question_type": question.kind}
            named = {"id": f"{number:02}-{place}", "video": clip_name(number)}
            lines.append({**named, **about, **(own if own_rates else {})})
    (folder / rows_file(eye)).write_text("".join(json.dumps(line) + "\n" for line in lines))
    print(f"{len(lines)} rows in {folder / rows_file(eye)}: {dict(asked)}")


def clip_name(number: int) -> str:
    """File of a clip."""
    return f"clip_{number:02}.mp4"


def make(folder: Path, clips: int, rows: int, rates: tuple[float, ...], seed: int, crf: int) -> None:
    """Write clips and manifests."""
    folder.mkdir(parents=True, exist_ok=True)
    shown = list(scenes(clips, rates, 16, seed))
    for number, scene in enumerate(shown):
        write_clip(folder / clip_name(number), scene, crf, seed * 1000 + number)
    size = sum(path.stat().st_size for path in folder.glob("*.mp4"))
    print(f"{clips} clips of {size / 1e6:.2f} MB in {folder}")
    for eye in EYES.values():
        write_rows(folder, shown, eye, rows, rates != (FPS,), seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("-o", "--out", type=Path, required=True)
    add("--clips", type=int, default=12)
    add("--rows", type=int, default=7, help="questions a clip, at most")
    add("--any-rate", action="store_true", help=f"sampled at {SAMPLING_RATES} a second, told in columns of the rows")
    add("--seed", type=int, default=1)
    add("--crf", type=int, default=23)
    given = parser.parse_args()
    rates = SAMPLING_RATES if given.any_rate else (FPS,)
    make(given.out, given.clips, given.rows, rates, given.seed, given.crf)


if __name__ == "__main__":
    main()
