"""What a model would see of one file, without an engine: the frames, their times, and the prompt around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vidpipe.engine.checkpoint import read_checkpoint
from vidpipe.engine.interface import Video
from vidpipe.errors import CapabilityError, RecipeError
from vidpipe.job.impossible import refuse_missing_pruning
from vidpipe.job.prepare import ClipReader, SeenClip
from vidpipe.manifest.folder import path_text
from vidpipe.manifest.row import Medium, Row
from vidpipe.models.family import Family, VideoLayout
from vidpipe.models.prompt import Span
from vidpipe.models.registry import FAMILIES, family_of, get_family
from vidpipe.plan.clips import Clip, PlannedRow
from vidpipe.pruning.counts import TokenAccount, account
from vidpipe.pruning.evs import evs_mask
from vidpipe.pruning.pixels import pixel_embedding
from vidpipe.pruning.vidcom2 import vidcom2_mask
from vidpipe.recipe.resolve import RowSettings
from vidpipe.recipe.schema import Pruning, Recipe, Sampling
from vidpipe.video.cache import cached_timeline
from vidpipe.video.picture_video import pictures_in
from vidpipe.wording import did_you_mean

PIXEL_SCORES = "scores from pixels, not from the model's encoder: which tokens go is a preview, how many is exact"
MASKS = {"evs": evs_mask, "vidcom2": vidcom2_mask}


@dataclass(frozen=True)
class Preview:
    """One file as one family sees it."""

    family: Family
    sampling: Sampling
    """Complete."""
    seen: SeenClip
    """Indices, file times, outcome of decoding."""
    file_frames: int
    """Frames that the file has, or pictures in the folder."""
    pixels: npt.NDArray[np.uint8]
    """[frames, height, width, 3], before the resize rule."""
    told_s: list[float]
    """Times that the engine is told, in seconds from the clip's start."""
    time_texts: list[str]
    """What the model reads, one for each frame or pair of frames."""
    prompt: list[Span]
    layout: VideoLayout
    tokens: TokenAccount
    kept_cells: npt.NDArray[np.bool_] | None
    """[steps, rows, columns]: tokens that pruning would keep, judged by pixels; None without pruning."""

    @property
    def frames_per_text(self) -> int:
        """Frames that share one time text."""
        return -(-len(self.told_s) // len(self.time_texts))

    def kept_in_frame(self, frame: int) -> npt.NDArray[np.bool_] | None:
        """[rows, columns] of the frame with that number among those shown."""
        if self.kept_cells is None:
            return None
        return np.asarray(self.kept_cells[frame * len(self.kept_cells) // len(self.told_s)])


def family_and_processor(model: str, family: str | None, folder: Path) -> tuple[Family, Mapping[str, Any]]:
    """The family that `model` names, with its published settings, or that of the checkpoint `model` with its own.

    Args:
        model: Name of a family, or a checkpoint's folder or hub name.
        family: The checkpoint's family, where its config does not tell.
        folder: Folder that a relative path starts from.

    Raises:
        RecipeError, CapabilityError: it is neither.
    """
    if model in FAMILIES:
        named = get_family(model)
        return named, named.published
    if "/" not in model and not (folder / model).is_dir():
        hint = did_you_mean(model, FAMILIES, then=f"Families: {', '.join(FAMILIES)}.")
        raise RecipeError(f"{model!r} is no family and no folder. {hint}")
    checkpoint = read_checkpoint(model, folder)
    found = get_family(family) if family else family_of(checkpoint.config, model)
    return found, checkpoint.processor(found)


def preview(
    path: Path, recipe: Recipe, family: Family, processor: Mapping[str, Any], frames_fps: float | None = None
) -> Preview:
    """Read `path` as a run of `recipe` would.

    Args:
        path: A video file, or a folder of pictures.
        recipe: Its sampling and pruning count.
        family: The model's.
        processor: The settings that its frames go by.
        frames_fps: Pictures a second, if it is a folder.

    Raises:
        MediaError: the file cannot be shown.
        CapabilityError: sampling or pruning that the family does not have.
    """
    sampling = family.complete(recipe.sampling, processor)
    if sampling.video_backend == "codec":
        raise CapabilityError(
            "sampling.video_backend: canvases are made by the checkpoint's own code, in a run. Set it to frames here."
        )
    if recipe.pruning is not None:
        refuse_missing_pruning(recipe.pruning.method, family)
    medium = Medium("video" if frames_fps is None else "frames", path_text(path.absolute()), fps=frames_fps)
    row = Row(index=0, line=1, id=path.name, media=(medium,))
    clip = Clip((PlannedRow(row, RowSettings(sampling, recipe.generation), ()),))
    prepared = ClipReader(recipe, family, processor, Path.cwd(), allow_outside_root=True).read(clip)
    (video,) = prepared.media
    assert isinstance(video, Video)
    told_s = [index / video.metadata["fps"] for index in video.metadata["frames_indices"]]
    height, width = video.pixels.shape[1:3]
    layout = family.layout(len(told_s), width, height, sampling, processor)
    kept_cells, tokens = pruned_cells(video.pixels, layout, recipe.pruning)
    return Preview(
        family=family,
        sampling=sampling,
        seen=prepared.seen,
        file_frames=len(cached_timeline(path)) if frames_fps is None else len(pictures_in(str(path))),
        pixels=video.pixels,
        told_s=told_s,
        time_texts=family.time_texts(told_s, sampling),
        prompt=family.prompt(told_s, layout, sampling),
        layout=layout,
        tokens=tokens,
        kept_cells=kept_cells,
    )


def pruned_cells(
    pixels: npt.NDArray[np.uint8], layout: VideoLayout, pruning: Pruning | None
) -> tuple[npt.NDArray[np.bool_] | None, TokenAccount]:
    """Which cells of a video pruning would keep, and how many tokens.

    Args:
        pixels: [frames, height, width, 3].
        layout: How they lie before the model.
        pruning: The recipe's.

    Returns:
        [steps, rows, columns], judged by pixels and not by the model's encoder, so a preview; None without pruning.
        The counts are exact.
    """
    if pruning is None:
        return None, TokenAccount(layout.vision_tokens, layout.vision_tokens)
    steps, rows, columns = layout.grid_thw[0], layout.grid_thw[1] // layout.merge, layout.grid_thw[2] // layout.merge
    mask = MASKS[pruning.method](pixel_embedding(pixels, steps, rows, columns), steps, pruning.rate)
    tokens = account(layout.tokens_per_step, steps, pruning.method, pruning.rate)
    return mask.reshape(steps, rows, columns), tokens
