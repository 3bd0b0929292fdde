"""Does vidpipe show a checkpoint what the checkpoint's own processor would? For weights that tests cannot have.

    python -m tests.gpu.real_checkpoint PATH [--trust-remote-code]

PATH is any checkpoint of a family that runs in vLLM. Five clips go the way of a run: planned, read,
prepared, answered. Beside it stands the processor that transformers loads from the checkpoint: it gets
the same frames and times, and makes a prompt and pixels of its own. Printed for each clip: whether
the prompts are equal token by token, the largest difference of normalised pixels, the answer; at the end
a verdict, which is also the exit code.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np

from tests.gpu.own_processors import OWN, Own, normalised, own_inputs
from vidpipe.engine import torchvision_on_cpu
from vidpipe.engine.interface import Engine, EngineInput, Reply, Video
from vidpipe.engine.registry import make_engine
from vidpipe.errors import RowError, VidpipeError
from vidpipe.job.prospect import Prospect, look_ahead
from vidpipe.job.work import prepare
from vidpipe.plan.clips import Clip
from vidpipe.recipe.load import build_recipe

DEMO = Path(__file__).resolve().parents[2] / "data" / "demo"
QUESTION = "What is the video about? Answer in one sentence."
CLIPS = 5
ONE_STEP = 2**-7
"""Between neighbouring numbers of bfloat16 around 1.5: pixels that differ by no more are equal."""
SHOWN = 120
"""Characters of an answer that are printed."""


@dataclass(frozen=True)
class Finding:
    """One clip, both ways."""

    name: str
    tokens: int
    first_difference: int | None
    """The first token in which the prompts differ; None where they are equal."""
    pixels_off: float
    reply: Reply | None

    @property
    def good(self) -> bool:
        """Whether nothing is wrong with it."""
        equal = self.first_difference is None and self.pixels_off <= ONE_STEP
        return equal and (self.reply is None or bool(self.reply.text))


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("path", help="folder of a checkpoint")
    parser.add_argument("--trust-remote-code", action="store_true", help="let the checkpoint run code of its own")
    parser.add_argument("--clips", type=Path, default=DEMO, help="folder of video files (default: data/demo)")
    parser.add_argument("--max-model-len", type=int, default=16384)
    parser.add_argument("--prompts-only", action="store_true", help="load no weights, ask no question")
    asked = parser.parse_args()
    try:
        return check(asked)
    except (VidpipeError, OSError) as error:
        print(f"{type(error).__name__}: {error}")
        return 2


def check(asked: argparse.Namespace) -> int:
    """Compare, answer, print; 0 when everything is as it should be."""
    recipe = {
        "manifest": str(asked.clips.resolve()),
        "model": {"path": asked.path, "trust_remote_code": asked.trust_remote_code},
        "engine": {"args": {"max_model_len": asked.max_model_len}},
        "prompt": QUESTION,
    }
    prospect = look_ahead(build_recipe(recipe, [], text="", folder=Path.cwd(), name="check", source="this script"))
    family, checkpoint = prospect.family, prospect.checkpoint.location
    if family.name not in OWN:
        print(f"{family.name}: its own processor is not known to this script. It knows {', '.join(OWN)}.")
        return 2
    engine = make_engine(prospect.recipe.model, prospect.recipe.engine, checkpoint, prospect.demands)
    print(f"{family.name}, {checkpoint}, {engine.version}")
    started = time.monotonic()
    if not asked.prompts_only:
        engine.start()
        print(f"loaded in {time.monotonic() - started:.1f} s")
    try:
        clips = prospect.plan(prospect.manifest.rows).clips[:CLIPS]
        findings = [look(clip, prospect, engine, ask=not asked.prompts_only) for clip in clips]
    finally:
        engine.stop()
    return verdict(findings, answered=not asked.prompts_only)


def look(clip: Clip, prospect: Prospect, engine: Engine, *, ask: bool) -> Finding:
    """One clip both ways, and its answer."""
    decoded = prospect.reader.read(clip)
    (video,) = decoded.media
    assert isinstance(video, Video)
    (made,) = prepare(prospect.recipe, engine.preparer, clip, decoded).inputs
    if isinstance(made, RowError):
        raise made
    family, model = prospect.family, prospect.recipe.model
    told_s = [index / video.metadata["fps"] for index in video.metadata["frames_indices"]]
    times = family.time_texts(told_s, clip.first.settings.sampling)
    torchvision_on_cpu.install()
    location, trust = prospect.checkpoint.location, model.trust_remote_code
    own = own_inputs(family.name, location, clip.first.messages, video, times, trust=trust)
    ids: list[int] = made.payload["prompt_token_ids"]
    unequal = (n for n in count() if ids[n : n + 1] != own.ids[n : n + 1])
    first = None if ids == own.ids else next(unequal)
    reply = answer(engine, made) if ask else None
    finding = Finding(clip.name, len(ids), first, pixels_off(made, own, prospect), reply)
    report(finding)
    return finding


def pixels_off(made: EngineInput, own: Own, prospect: Prospect) -> float:
    """The largest difference between what the engine gets and the own processor's patches; inf for another shape."""
    (item,) = made.payload["mm_kwargs"]["video"]
    patches = next(field.data for name, field in item.items() if name.startswith("pixel_values"))
    ours = patches.float().numpy().reshape(len(patches), 3, -1)
    if not patches.is_floating_point():  # vLLM normalises some families' pixels on the device
        ours = normalised(patches, argparse.Namespace(**prospect.checkpoint.processor(prospect.family)))
    return float(np.abs(ours - own.pixels).max()) if ours.shape == own.pixels.shape else float("inf")


def answer(engine: Engine, made: EngineInput) -> Reply:
    """The reply to one request."""
    engine.submit(made)
    while True:
        for reply in engine.poll():
            assert isinstance(reply, Reply), reply
            return reply


def report(finding: Finding) -> None:
    """A line for one clip."""
    where = finding.first_difference
    prompt = "prompt equal" if where is None else f"PROMPT DIFFERS from token {where} on"
    pixels = f"pixels {'equal' if finding.pixels_off <= ONE_STEP else 'DIFFER'} (at most {finding.pixels_off:.4f})"
    said = "" if finding.reply is None else f", answer {(finding.reply.text or '')[:SHOWN]!r}"
    print(f"{finding.name}: {finding.tokens} tokens, {prompt}, {pixels}{said}")


def verdict(findings: Sequence[Finding], *, answered: bool) -> int:
    """The last line, and the exit code."""
    good = sum(finding.good for finding in findings)
    what = "prompts, pixels and answers" if answered else "prompts and pixels"
    right = good == len(findings) == CLIPS
    print(f"verdict: {'GOOD' if right else 'BAD'}: {what} of {good} of {len(findings)} clips are as they should be")
    if answered and right:
        print("That an answer is there says nothing of its worth: read the five above.")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
