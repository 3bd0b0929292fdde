"""Rows of a world's manifest through the real engine, with or without a fault injected between decoding and prompt.

What `vidpipe run` does with a manifest, without its process and its run directory: read, prepare, answer.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.conftest import ROOT, TINY_MODEL
from tests.world.clips import FPS, rows_file
from tests.world.view import EYES, Eye
from vidpipe.engine.interface import Demands, EngineInput, Reply, Video
from vidpipe.engine.vllm_engine import VllmEngine
from vidpipe.job.prepare import ClipReader
from vidpipe.job.preview import family_and_processor
from vidpipe.job.work import prepare
from vidpipe.manifest.row import Medium, Row
from vidpipe.plan.clips import make_plan
from vidpipe.recipe.schema import EngineSection, Pruning, Recipe

Fault = Callable[[Video], Video]


def options(description: str | None) -> argparse.Namespace:
    """The command line of a script that judges a model on a world: `rows` and `model`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rows", type=Path, default=ROOT / "data" / "demo", help="folder of clips with manifests")
    parser.add_argument("--model", type=Path, default=TINY_MODEL)
    return parser.parse_args()


def eye_of(checkpoint: Path) -> Eye:
    """How the family of a checkpoint looks at the world."""
    return EYES[family_and_processor(str(checkpoint), None, ROOT)[0].name]


@dataclass(frozen=True)
class Answered:
    """A row and what came of it."""

    kind: str
    question: str
    answer: str
    text: str

    @property
    def right(self) -> bool:
        """Whether the text is the answer, letter by letter."""
        return self.text == self.answer


def recipe(checkpoint: Path) -> Recipe:
    """The demo's settings."""
    return Recipe.model_validate(
        {
            "manifest": "rows.jsonl",
            "model": {"path": str(checkpoint), "trust_remote_code": True},
            "sampling": {"fps": FPS, **eye_of(checkpoint).asked},
            "generation": {"max_tokens": 16},
        }
    )


def read_rows(folder: Path, checkpoint: Path) -> list[dict[str, Any]]:
    """Lines of the manifest that asks a checkpoint's family."""
    return [json.loads(line) for line in (folder / rows_file(eye_of(checkpoint))).read_text().splitlines()]


def row(index: int, line: Mapping[str, Any]) -> Row:
    """A line of the manifest as vidpipe takes it."""
    own = {key.removeprefix("sampling."): value for key, value in line.items() if key.startswith("sampling.")}
    media = (Medium("video", line["video"]),)
    return Row(index, index, line["id"], media, question=line["question"], sampling=own)


@contextmanager
def engine(checkpoint: Path, pruning: Pruning | None = None, **arguments: Any) -> Iterator[VllmEngine]:
    """vLLM with the checkpoint."""
    settings = EngineSection(args={"max_model_len": 4096, "max_num_seqs": 16, **arguments})
    demands = Demands() if pruning is None else Demands(pruning)
    started = VllmEngine(recipe(checkpoint).model, settings, str(checkpoint), demands)
    started.start()
    try:
        yield started
    finally:
        started.stop()


def prepared(
    running: VllmEngine, checkpoint: Path, folder: Path, lines: Sequence[Mapping[str, Any]], fault: Fault | None = None
) -> list[list[EngineInput]]:
    """Inputs of the rows of each clip; `fault` changes what they are shown."""
    settings = recipe(checkpoint)
    family, processor = family_and_processor(str(checkpoint), None, ROOT)
    reader = ClipReader(settings, family, processor, folder, allow_outside_root=True)
    rows = [row(index, line) for index, line in enumerate(lines)]
    found = []
    for clip in make_plan(rows, settings, family, processor).clips:
        decoded = reader.read(clip)
        if fault is not None:
            (video,) = decoded.media
            assert isinstance(video, Video)
            decoded = replace(decoded, media=(fault(video),), identities=(f"{fault} {decoded.identities}",))
        made = prepare(settings, running.preparer, clip, decoded).inputs
        found.append([one for one in made if isinstance(one, EngineInput)])
        assert len(found[-1]) == len(made), made
    return found


def answers(
    running: VllmEngine, checkpoint: Path, folder: Path, lines: Sequence[Mapping[str, Any]], fault: Fault | None = None
) -> list[Answered]:
    """What the engine says to each line, in their order; `fault` changes what it is shown of each clip."""
    for clip in prepared(running, checkpoint, folder, lines, fault):
        for one in clip:
            running.submit(one)
    replies: dict[str, Reply] = {}
    while len(replies) < len(lines):
        replies |= {reply.id: reply for reply in running.poll()}
    return [
        Answered(line["question_type"], line["question"], line["answer"], replies[line["id"]].text or "")
        for line in lines
    ]


def share(answered: Iterable[Answered], *kinds: str) -> float:
    """Share right, of some kinds or of all."""
    right = [one.right for one in answered if not kinds or one.kind in kinds]
    return sum(right) / len(right)
