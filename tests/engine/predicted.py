"""What a family's rules predict for a file, to be held against what engines make of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vidpipe.engine.checkpoint import read_checkpoint
from vidpipe.engine.interface import EngineInput, Request, Video
from vidpipe.engine.prompt import PromptBuilder
from vidpipe.engine.vllm_prepare import VllmPreparer
from vidpipe.job.prepare import ClipReader, PreparedClip
from vidpipe.manifest.row import Medium, Row
from vidpipe.models.family import Family
from vidpipe.models.prompt import token_ids
from vidpipe.plan.clips import Clip, make_plan
from vidpipe.recipe.schema import Generation, Recipe

QUESTION = "The question is: what happens after 3 seconds?"


def read_clip(checkpoint: Path, family: Family, *paths: Path, **sampling: Any) -> tuple[Clip, PreparedClip]:
    """A row with the files at `paths` as videos, planned and decoded as a run does it."""
    recipe = Recipe.model_validate({"manifest": "m", "model": {"path": str(checkpoint)}, "sampling": sampling})
    processor = read_checkpoint(str(checkpoint), Path("/")).processor(family)
    media = tuple(Medium("video", str(path)) for path in paths)
    plan = make_plan([Row(index=0, line=1, id="r", media=media, question=QUESTION)], recipe, family, processor)
    assert not plan.bad_rows, plan.bad_rows
    reader = ClipReader(recipe, family, processor, paths[0].parent, allow_outside_root=True)
    return plan.clips[0], reader.read(plan.clips[0])


def videos_of(prepared: PreparedClip) -> list[Video]:
    videos = [medium for medium in prepared.media if isinstance(medium, Video)]
    assert len(videos) == len(prepared.media)
    return videos


def told_s(video: Video) -> list[float]:
    """The times that the engine is told, in seconds."""
    return [index / video.metadata["fps"] for index in video.metadata["frames_indices"]]


def predicted_ids(checkpoint: Path, family: Family, clip: Clip, prepared: PreparedClip, around: int) -> list[int]:
    """The prompt that the template and the family's rules say.

    Args:
        checkpoint: Folder with tokenizer and template.
        family: Whose rules hold.
        clip: What `read_clip` planned.
        prepared: What it decoded.
        around: Tokens on each side of a video's place that the family's prompt brings along.
    """
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast.from_pretrained(checkpoint)
    processor = read_checkpoint(str(checkpoint), Path("/")).processor(family)
    ids = PromptBuilder(tokenizer, tokenizer.chat_template).token_ids(clip.first.messages, "literal")
    sampling, made, begin = clip.first.settings.sampling, list[int](), 0
    for video in videos_of(prepared):
        frames, height, width = video.pixels.shape[:3]
        spans = family.prompt(told_s(video), family.layout(frames, width, height, sampling, processor), sampling)
        place = ids.index(tokenizer.convert_tokens_to_ids(family.slot_word), begin)
        made += ids[begin : place - around]
        made += token_ids(
            spans, lambda text: tokenizer.encode(text, add_special_tokens=False), tokenizer.convert_tokens_to_ids
        )
        begin = place + 1 + around
    return made + ids[begin:]


def rendered(preparer: VllmPreparer, clip: Clip, prepared: PreparedClip) -> dict[str, Any]:
    """What vLLM's renderer makes of the row."""
    asked = Request("r", clip.first.messages, Generation(), prepared.media)
    (made,) = preparer.prepare([asked], prepared.identities).inputs
    assert isinstance(made, EngineInput), made
    return dict(made.payload)
