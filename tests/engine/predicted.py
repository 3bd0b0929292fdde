"""What a family's rules predict for a file, to be held against what engines make of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vidpipe.engine.checkpoint import read_checkpoint
from vidpipe.engine.interface import EngineInput, Request, Video
from vidpipe.engine.prompt import PromptBuilder
from vidpipe.engine.vllm_prepare import VllmPreparer
from vidpipe.job.prepare import ClipReader, PreparedClip
from vidpipe.manifest.row import Medium, Row
from vidpipe.models.family import Family
from vidpipe.models.prompt import Span, token_ids
from vidpipe.plan.clips import Clip, make_plan
from vidpipe.recipe.schema import Generation, Recipe

QUESTION = "The question is: what happens after 3 seconds?"


def read_clip(checkpoint: Path, family: Family, *paths: Path, **sampling: Any) -> tuple[Clip, PreparedClip]:
    """A row with the files at `paths` as media, planned and decoded as a run does it; `.png` are images."""
    recipe = Recipe.model_validate({"manifest": "m", "model": {"path": str(checkpoint)}, "sampling": sampling})
    described = read_checkpoint(str(checkpoint), Path("/"))
    processor = described.processor(family)
    media = tuple(Medium("image" if path.suffix == ".png" else "video", str(path)) for path in paths)
    plan = make_plan([Row(index=0, line=1, id="r", media=media, question=QUESTION)], recipe, family, processor)
    assert not plan.bad_rows, plan.bad_rows
    root, images = paths[0].parent, described.image_processor
    reader = ClipReader(recipe, family, processor, root, allow_outside_root=True, image_processor=images)
    return plan.clips[0], reader.read(plan.clips[0])


def videos_of(prepared: PreparedClip) -> list[Video]:
    return [medium for medium in prepared.media if isinstance(medium, Video)]


def told_s(video: Video) -> list[float]:
    """The times that the engine is told, in seconds."""
    return [index / video.metadata["fps"] for index in video.metadata["frames_indices"]]


def predicted_ids(
    checkpoint: Path, family: Family, clip: Clip, prepared: PreparedClip, around: int, image_ends: Sequence[str] = ()
) -> list[int]:
    """The prompt that the template and the family's rules say.

    Args:
        checkpoint: Folder with tokenizer and template.
        family: Whose rules hold.
        clip: What `read_clip` planned.
        prepared: What it decoded.
        around: Tokens on each side of a video's place that the family's prompt brings along.
        image_ends: Control words that vLLM puts before and behind an image's tokens.
    """
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast.from_pretrained(checkpoint)
    described = read_checkpoint(str(checkpoint), Path("/"))
    id_of = tokenizer.convert_tokens_to_ids
    ids = PromptBuilder(tokenizer, tokenizer.chat_template).token_ids(clip.first.messages, "literal")
    sampling, made, begin = clip.first.settings.sampling, list[int](), 0
    for medium in prepared.media:
        height, width = medium.pixels.shape[-3:-1]
        if isinstance(medium, Video):
            layout = family.layout(len(medium.pixels), width, height, sampling, described.processor(family))
            spans, beside = family.prompt(told_s(medium), layout, sampling), around
        else:
            rules = family.abilities.images
            assert rules is not None
            tokens = rules.layout(width, height, described.image_processor).vision_tokens
            ends = [Span(word, 1) for word in image_ends]
            spans, beside = [*ends[:1], Span(rules.vision_word, tokens), *ends[1:]], 0
        place = ids.index(id_of(medium.slot_word), begin)
        made += ids[begin : place - beside]
        made += token_ids(spans, lambda text: tokenizer.encode(text, add_special_tokens=False), id_of)
        begin = place + 1 + beside
    return made + ids[begin:]


def rendered(preparer: VllmPreparer, clip: Clip, prepared: PreparedClip) -> dict[str, Any]:
    """What vLLM's renderer makes of the row."""
    asked = Request("r", clip.first.messages, Generation(), prepared.media)
    (made,) = preparer.prepare([asked], prepared.identities).inputs
    assert isinstance(made, EngineInput), made
    return dict(made.payload)
