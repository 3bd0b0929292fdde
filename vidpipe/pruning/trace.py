"""The pruning rules as golden vectors (see `vidpipe.models.trace`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from vidpipe.models.positions import delta
from vidpipe.models.prompt import token_ids
from vidpipe.models.qwen3_vl_prompt import Media, lumped, mrope_positions, pairs
from vidpipe.models.trace import stub
from vidpipe.models.trace.attempt import attempt
from vidpipe.pruning.counts import COUNTS, evs_count, vidcom2_count
from vidpipe.pruning.evs import evs_mask
from vidpipe.pruning.positions import block_positions, pruned_video, with_media
from vidpipe.pruning.vidcom2 import vidcom2_mask

Values = dict[str, Any]
Mask = npt.NDArray[np.bool_]
MERGE = 2


def retained_counts(given: Values) -> Values:
    """`retained_counts`."""
    sizes = (given["tokens_per_frame"], given["num_frames"], given["q"])
    return {"evs": evs_count(*sizes), "vidcom2": vidcom2_count(*sizes)}


def mask_evs(given: Values) -> Values:
    """`retention_mask_evs`."""
    return _mask(given, evs_mask, evs_count)


def mask_vidcom2(given: Values) -> Values:
    """`retention_mask_vidcom2`."""
    return _mask(given, vidcom2_mask, vidcom2_count)


def _mask(given: Values, rule: Callable[..., Mask], count: Callable[[int, int, float], int]) -> Values:
    """The mask in float32, and whether it depends on the arithmetic or on the order of tokens."""
    steps, rate = given["grid_thw"][0], given["q"]
    embeddings = np.array(given["embeds"], dtype=np.float32).reshape(-1, given["channels"])
    mask = rule(embeddings, steps, rate)
    per_step = mask.reshape(steps, -1)
    backwards = embeddings.reshape(steps, per_step.shape[1], -1)[:, ::-1].reshape(embeddings.shape)
    reordered = rule(backwards, steps, rate).reshape(steps, -1)[:, ::-1].reshape(-1)
    coarse = _to_bfloat16(embeddings)
    return {
        "mask": mask.astype(int).tolist(),
        "retained": int(mask.sum()),
        "per_frame": per_step.sum(axis=1).tolist(),
        "count_fn": count(per_step.shape[1], steps, rate),
        "stable_float64": bool((rule(embeddings.astype(np.float64), steps, rate) == mask).all()),
        "same_in_bfloat16": bool((rule(coarse, steps, rate) == mask).all()),
        "order_independent": bool((reordered == mask).all()),
    }


def _to_bfloat16(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Values rounded to bfloat16 (half to even), still held as float32."""
    bits = values.view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return rounded.astype(np.uint32).view(np.float32)


def qwen3vl_prompt_layout(given: Values) -> Values:
    """`qwen3vl_prompt_layout`: ids of a video in the prompt, whole or lumped."""
    texts = [f"<{time_s:.1f} seconds>" for time_s in given["timestamps"]]
    steps, tokens = len(texts), given["tokens_per_frame"]
    if given["method"] is None:
        per_step = [tokens] * steps
    else:
        per_step = lumped(steps, COUNTS[given["method"]](tokens, steps, given["q"]))
    control = stub.control(given["ids"])
    ids = token_ids(pairs(texts, per_step), stub.tokenise, stub.word_ids(control).__getitem__)
    return {
        "tokens_per_frame_placeholder": per_step,
        "token_ids_rle": stub.run_lengths(ids),
        "length": len(ids),
        "num_video_tokens": ids.count(control.video),
    }


def qwen3vl_positions(given: Values) -> Values:
    """`qwen3vl_evs_positions`: what each row of the placeholder stands for, and the prompt's positions before that."""
    control = stub.control(stub.DEFAULT_IDS)
    grid = tuple(given["grid_thw"])
    steps, tokens = grid[0], grid[1] * grid[2] // MERGE**2
    texts = [f"<{time_s:.1f} seconds>" for time_s in given["timestamps"]]
    mask = np.array(given["retention_mask"], dtype=np.bool_)
    video = pruned_video(mask, grid, MERGE, texts, stub.tokenise, control)
    kept = COUNTS[given["method"]](tokens, steps, given["q"])
    placeholder = token_ids(pairs(texts, lumped(steps, kept)), stub.tokenise, stub.word_ids(control).__getitem__)
    ids = [5] * given["prefix"] + placeholder + [6] * given["suffix"]
    initial = mrope_positions(ids, [Media(grid, given["prefix"])], control, MERGE)
    return {
        "placeholder_length": len(placeholder),
        "final_layout_rle": stub.run_lengths(video.ids),
        "local_positions_t_h_w_isstart_isvideo": video.local.tolist(),
        "initial_positions": initial.tolist(),
    }


def recompute_mrope(given: Values) -> Values:
    """`evs_recompute_mrope`: the prompt's positions once a whole video's kept tokens are known."""
    local = np.array(given.get("media_positions_5ch") or given["media_positions_4ch"], dtype=np.int64)
    before = np.array(given["initial_positions"], dtype=np.int64)
    control = stub.control(given["ids"])
    positions, error = attempt(lambda: with_media(given["input_ids"], local, before, control))
    found = positions is not None
    return {
        "positions": positions.tolist() if found else None,
        "delta": delta(positions, len(given["input_ids"])) if found else None,
        "error": error,
    }


def mrope_for_media(given: Values) -> Values:
    """`evs_mrope_for_media`."""
    positions = block_positions(
        tuple(given["grid_thw"]), given["merge"], given["tokens_per_second"], given["second_per_grid"]
    )
    return {"positions": positions.tolist()}
