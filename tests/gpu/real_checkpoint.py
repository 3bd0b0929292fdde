"""Does vidpipe show a checkpoint what the checkpoint's own processor would? For weights that tests cannot have.

    python tests/gpu/real_checkpoint.py PATH [--trust-remote-code]

PATH is any checkpoint of a family that runs in vLLM. Clips go the way of a run: read, prepared,
answered. Beside it stands the processor that transformers loads from the checkpoint: it gets the
same frames and times, and makes a prompt and pixels of its own. Printed for each clip: whether
prompts are equal token by token, the largest difference of normalised pixels, the answer; at the
end a verdict, which is also the exit code.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vidpipe.engine import torchvision_on_cpu, vllm_environment
from vidpipe.engine.checkpoint import Checkpoint, read_checkpoint
from vidpipe.engine.interface import EngineInput, Reply, Video
from vidpipe.engine.vllm_engine import VllmEngine
from vidpipe.errors import RowError, VidpipeError
from vidpipe.job.impossible import refuse_impossible, with_engine_args
from vidpipe.job.prepare import ClipReader
from vidpipe.job.work import prepare
from vidpipe.manifest.row import Row
from vidpipe.models.family import Family
from vidpipe.models.registry import family_of
from vidpipe.plan.clips import Clip, make_plan
from vidpipe.recipe.schema import Recipe, Sampling

DEMO = Path(__file__).resolve().parents[2] / "data" / "demo"
QUESTION = "What is the video about? Answer in one sentence."
CLIPS = 5
ONE_STEP = 2**-7
"""Between neighbouring numbers of bfloat16 around 1.5: pixels that differ by no more are equal."""


@dataclass(frozen=True)
class Own:
    """What the checkpoint's own processor makes of a clip."""

    ids: list[int]
    pixels: npt.NDArray[np.float32]
    """Patches as the vision encoder takes them, normalised, [patches, 3 x values]."""


def qwen3_vl(processor: Any, text: str, video: Video, times: Sequence[str]) -> Own:
    """Frames and metadata; the processor itself computes the times."""
    wanted = ("fps", "frames_indices", "total_num_frames", "duration")
    metadata = {key: video.metadata[key] for key in wanted}
    made = processor(
        text=[text],
        videos=[video.pixels],
        videos_kwargs={"video_metadata": [metadata], "do_sample_frames": False, **video.processor_kwargs},
        return_tensors="pt",
    )
    return Own(made["input_ids"][0].tolist(), made["pixel_values_videos"].float().numpy())


def llava_onevision2(processor: Any, text: str, video: Video, times: Sequence[str]) -> Own:
    """Frames as images with their times before them, as the published scores were made."""
    from PIL import Image

    slot, image = (f"<|vision_start|><|{kind}_pad|><|vision_end|>" for kind in ("video", "image"))
    frames = [Image.fromarray(frame) for frame in video.pixels]
    text = text.replace(slot, "".join(time + image for time in times))
    made = processor(text=[text], images=frames, return_tensors="pt")
    return Own(made["input_ids"][0].tolist(), made["pixel_values"].float().numpy())


def load_llava_onevision2(path: str, trust: bool) -> Any:
    """Put together as vLLM does it; the class's own `from_pretrained` stops to ask whether its code may run."""
    from transformers import AutoTokenizer, Qwen2VLImageProcessor
    from transformers.dynamic_module_utils import get_class_from_dynamic_module

    name = "processing_llava_onevision2.LlavaOnevision2Processor"
    return get_class_from_dynamic_module(name, path)(
        image_processor=Qwen2VLImageProcessor.from_pretrained(path),
        tokenizer=AutoTokenizer.from_pretrained(path, trust_remote_code=trust),
    )


def load(path: str, trust: bool) -> Any:
    """The processor that a checkpoint names."""
    from transformers import AutoProcessor

    return AutoProcessor.from_pretrained(path, trust_remote_code=trust)


OWN: dict[str, tuple[Callable[[str, bool], Any], Callable[[Any, str, Video, Sequence[str]], Own]]] = {
    "qwen3_vl": (load, qwen3_vl),
    "llava_onevision2": (load_llava_onevision2, llava_onevision2),
}
"""How each family's own processor is loaded and asked."""


@dataclass(frozen=True)
class Finding:
    """One clip, both ways."""

    name: str
    equal_ids: bool
    tokens: int
    first_difference: int | None
    pixels_off: float
    reply: Reply | None

    @property
    def good(self) -> bool:
        """Whether nothing is wrong with it."""
        return self.equal_ids and self.pixels_off <= ONE_STEP and (self.reply is None or bool(self.reply.text))


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("path", help="folder of a checkpoint")
    parser.add_argument("--trust-remote-code", action="store_true", help="let the checkpoint run code of its own")
    parser.add_argument("--clips", type=Path, default=DEMO, help="folder of mp4 files (default: data/demo)")
    parser.add_argument("--max-model-len", type=int, default=16384)
    parser.add_argument("--prompts-only", action="store_true", help="load no weights, ask no question")
    asked = parser.parse_args()
    try:
        return check(asked)
    except VidpipeError as error:
        print(f"{type(error).__name__}: {error}")
        return 2


def check(asked: argparse.Namespace) -> int:
    """Compare, answer, print; 0 when everything is as it should be."""
    checkpoint = read_checkpoint(asked.path, Path.cwd())
    family = family_of(checkpoint.config, asked.path)
    if family.name not in OWN:
        print(f"{family.name}: its own processor is not known to this script. It knows {', '.join(OWN)}.")
        return 2
    recipe = Recipe.model_validate(
        {
            "manifest": "none",
            "model": {"path": checkpoint.location, "trust_remote_code": asked.trust_remote_code},
            "engine": {"args": {"max_model_len": asked.max_model_len}},
        }
    )
    refuse_impossible(recipe, family)
    recipe = with_engine_args(recipe, family)
    engine = VllmEngine(recipe.model, recipe.engine, checkpoint.location)
    print(f"{family.name}, {checkpoint.location}, {engine.version}")
    started = time.monotonic()
    if not asked.prompts_only:
        engine.start()
        print(f"loaded in {time.monotonic() - started:.1f} s")
    try:
        findings = [look(path, recipe, family, checkpoint, engine, asked) for path in clips_in(asked.clips)]
    finally:
        engine.stop()
    return verdict(findings, answered=not asked.prompts_only)


def clips_in(folder: Path) -> list[Path]:
    """The first clips of `folder` by name."""
    return sorted(folder.resolve().glob("*.mp4"))[:CLIPS]


def look(
    path: Path, recipe: Recipe, family: Family, checkpoint: Checkpoint, engine: VllmEngine, asked: argparse.Namespace
) -> Finding:
    """One clip both ways, and its answer."""
    settings = checkpoint.processor(family)
    row = Row(index=0, line=1, id=path.name, video=str(path), question=QUESTION)
    (clip,) = make_plan([row], recipe, family, settings).clips
    decoded = ClipReader(recipe, family, settings, path.parent, allow_outside_root=True).read(clip)
    (made,) = prepare(recipe, engine.preparer, clip, decoded).inputs
    if isinstance(made, RowError):
        raise made
    own = own_inputs(checkpoint, family, clip, decoded.video, recipe)
    ids: list[int] = made.payload["prompt_token_ids"]
    unequal = (n for n, pair in enumerate(zip(ids, own.ids, strict=False)) if pair[0] != pair[1])
    first = None if ids == own.ids else next(unequal, min(len(ids), len(own.ids)))
    reply = None if asked.prompts_only else answer(engine, made)
    finding = Finding(path.name, ids == own.ids, len(ids), first, pixels_off(made, own, settings), reply)
    report(finding)
    return finding


def own_inputs(checkpoint: Checkpoint, family: Family, clip: Clip, video: Video, recipe: Recipe) -> Own:
    """What the checkpoint's own processor makes of the frames that vidpipe shows."""
    torchvision_on_cpu.install()
    load_own, ask = OWN[family.name]
    processor = load_own(checkpoint.location, recipe.model.trust_remote_code)
    text = processor.tokenizer.apply_chat_template(
        list(clip.first.messages), tokenize=False, add_generation_prompt=True
    )
    sampling: Sampling = clip.first.settings.sampling
    told_s = [index / video.metadata["fps"] for index in video.metadata["frames_indices"]]
    return ask(processor, text, video, family.time_texts(told_s, sampling))


def pixels_off(made: EngineInput, own: Own, settings: Mapping[str, Any]) -> float:
    """The largest difference between what the engine gets and the own processor's patches; inf for another shape."""
    (item,) = made.payload["mm_kwargs"]["video"]
    patches = next(field.data for name, field in item.items() if name.startswith("pixel_values"))
    ours = patches.float().numpy().reshape(len(patches), 3, -1)
    if not patches.is_floating_point():  # vLLM normalises some families' pixels on the device
        mean, std = (np.asarray(settings[key], np.float32)[:, None] for key in ("image_mean", "image_std"))
        ours = (ours / 255 - mean) / std
    theirs = own.pixels.reshape(len(own.pixels), 3, -1)
    return float(np.abs(ours - theirs).max()) if ours.shape == theirs.shape else float("inf")


def answer(engine: VllmEngine, made: EngineInput) -> Reply:
    """The reply to one request."""
    engine.submit(made)
    while True:
        for reply in engine.poll():
            return reply


def report(finding: Finding) -> None:
    """A line for one clip."""
    prompt = "prompt equal" if finding.equal_ids else f"PROMPT DIFFERS from token {finding.first_difference} on"
    pixels = f"pixels {'equal' if finding.pixels_off <= ONE_STEP else 'DIFFER'} (at most {finding.pixels_off:.4f})"
    said = "" if finding.reply is None else f", answer {finding.reply.text!r}"
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
    vllm_environment.prepare(sys.argv[1] if len(sys.argv) > 1 else "")
    sys.exit(main())
