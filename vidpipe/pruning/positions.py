"""Where pruned tokens stand: each keeps the position that it had in the whole video, so positions have holes.

Sources: vLLM `model_executor/models/qwen3_vl.py` (`_postprocess_video_embeds_evs`,
`_get_expanded_positions`), `multimodal/video_prune/evs.py` (`compute_mrope_for_media`,
`recompute_mrope_positions`).

These are upstream's rules as they are meant, for one video in one prefill chunk; what vLLM
makes of them elsewhere, and the repair, is in `vidpipe.engine.vllm_plugin`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vidpipe.models.positions import Positions
from vidpipe.models.prompt import token_ids
from vidpipe.models.qwen3_vl_prompt import END, START, VIDEO, Ids, Media, mrope_positions, pairs


@dataclass(frozen=True)
class PrunedVideo:
    """What the rows of a pruned video's placeholder really stand for."""

    ids: list[int]
    """Token of each row; the prompt's own ids keep the lumped form."""
    local: npt.NDArray[np.int64]
    """[rows, 5]: t, h, w counted from the video's start, then whether vision start, then whether vision."""


def pruned_video(
    mask: npt.NDArray[np.bool_],
    grid_thw: tuple[int, int, int],
    merge: int,
    time_texts: Sequence[str],
    tokenise: Callable[[str], Sequence[int]],
    control: Ids,
) -> PrunedVideo:
    """Rows and positions of a Qwen3-VL video of which `mask` [tokens] keeps some."""
    words = {START: control.vision_start, VIDEO: control.video, END: control.vision_end}
    steps = grid_thw[0]
    whole = token_ids(pairs(time_texts, [len(mask) // steps] * steps), tokenise, words.__getitem__)
    kept = token_ids(pairs(time_texts, mask.reshape(steps, -1).sum(axis=1).tolist()), tokenise, words.__getitem__)
    positions = mrope_positions(whole, [Media(grid_thw, 0)], control, merge)
    stays = np.ones(len(whole), dtype=np.bool_)
    stays[np.asarray(whole) == control.video] = mask
    rows = np.asarray(kept)
    flags = np.stack([rows == control.vision_start, rows == control.video])
    return PrunedVideo(kept, np.concatenate([positions[:, stays], flags.astype(np.int64)]).T)


def block_positions(
    grid_thw: tuple[int, int, int], merge: int, tokens_per_second: float, seconds_per_step: float
) -> npt.NDArray[np.int64]:
    """Positions (t, h, w, width) of a Qwen2.5-VL video's tokens, [tokens, 4]; t is cut to whole numbers."""
    steps, rows, columns = grid_thw[0], grid_thw[1] // merge, grid_thw[2] // merge
    t, h, w = np.indices((steps, rows, columns)).reshape(3, -1)
    # torch multiplies in float32
    scaled = t.astype(np.float32) * np.float32(tokens_per_second * seconds_per_step)
    return np.stack([scaled.astype(np.int64), h, w, np.full_like(w, columns)], axis=1)


def with_media(ids: Sequence[int], local: npt.NDArray[np.int64], positions: Positions, control: Ids) -> Positions:
    """The prompt's positions once the kept tokens of its video are known, the whole video in one prefill chunk.

    Args:
        ids: The prompt, lumped.
        local: [5, rows] of `PrunedVideo.local`, or [4, tokens] of `block_positions`; channels first.
        positions: [3, tokens] as they were before.
        control: Ids of the control tokens.

    Returns:
        [3, tokens]: the video from its place, and the text behind it from one above the
        largest position in it (4 channels: from the width).
    """
    tokens = np.asarray(ids)
    is_media = tokens == control.video
    result = positions.copy()
    if not is_media.any():
        return result
    start = int(np.flatnonzero(tokens == control.vision_start)[0])
    channels = len(local)
    if channels == 5 and local[4].any():
        first = start - int(local[3].argmax())  # the time text stands before the vision start
        base = int(positions[-1, first - 1]) + 1
    else:
        first, base = start + 1, int(positions[-1, start]) + 1
    end = first + local.shape[1]
    result[:, first:end] = local[:3] + base
    following = base + (int(local[:3].max()) + 1 if channels == 5 else int(local[3, 0]))
    result[:, end : len(tokens)] = following + np.cumsum(~is_media[end:]) - 1
    return result
