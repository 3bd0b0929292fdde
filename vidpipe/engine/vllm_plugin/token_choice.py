"""Which tokens of several videos stay, computed for all of them together; nothing waits for the device.

The rules, the arithmetic and its order are upstream's (vLLM `multimodal/video_prune/evs.py` and
`vidcom2.py`, `compute_retention_mask`). Upstream asks for one video after another and reads
masks and shares back in between. Here sorts take the place of masks: how many tokens stay is
known beforehand, so that the shape of everything is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch

from vidpipe.engine.vllm_plugin.host_copies import to_device
from vidpipe.engine.vllm_plugin.video_layout import Grid
from vidpipe.pruning.counts import COUNTS
from vidpipe.pruning.evs import EPSILON, FIRST_STEP_SCORE
from vidpipe.pruning.vidcom2 import BANDWIDTHS, TEMPERATURE


def kept_counts(grids: Sequence[Grid], method: str, rate: float) -> list[int]:
    """How many tokens of each video stay."""
    return [min(COUNTS[method](grid.tokens_per_pair, grid.pairs, rate), grid.tokens) for grid in grids]


def kept_tokens(rows: Any, grids: Sequence[Grid], counts: Sequence[int], method: str, rate: float) -> Any:
    """Places in `rows` of the tokens that stay, int64: video by video, the most wanted first.

    Args:
        rows: Embeddings [tokens of all videos, channels], in order of time, then row, then column.
        grids: Of the videos, in order.
        counts: How many tokens of each stay.
        method: `evs` or `vidcom2`.
        rate: Share to drop.
    """
    ends = np.cumsum([grid.tokens for grid in grids])
    starts = ends - [grid.tokens for grid in grids]
    first_of_each = np.concatenate([start + np.arange(count) for start, count in zip(starts, counts, strict=True)])
    video = np.repeat(np.arange(len(grids)), ends - starts)
    if method == "evs":
        steps = np.repeat([grid.tokens_per_pair for grid in grids], ends - starts)
        places = np.arange(ends[-1])
        is_first = places - starts[video] < steps
        before, video, first_of_each, is_first = to_device(
            [np.where(is_first, places, places - steps), video, first_of_each, is_first], rows.device
        )
        keys = [(_evs_scores(rows, before, is_first), True)]
    else:
        video, first_of_each = to_device([video, first_of_each], rows.device)
        keys = _vidcom2_keys(rows, grids, rate)
    if len(grids) > 1:
        keys.append((video, False))
    return _sorted_places(keys).index_select(0, first_of_each)


def _sorted_places(keys: Sequence[tuple[Any, bool]]) -> Any:
    """Places in the order of several keys, each with whether it descends; the last key counts most.

    Of equal ones the earlier comes first.
    """
    order = None
    for key, descending in keys:
        found = (key if order is None else key.index_select(0, order)).sort(stable=True, descending=descending).indices
        order = found if order is None else order.index_select(0, found)
    return order


def _evs_scores(rows: Any, before: Any, is_first: Any) -> Any:
    """How much each token differs from that at its place one pair before, [tokens]; a first pair's score is 255."""
    directions = rows / torch.linalg.vector_norm(rows, dim=-1, keepdim=True).clamp_min_(EPSILON)
    similarity = (directions * directions.index_select(0, before)).sum(-1)
    return (1 - similarity).masked_fill_(is_first, FIRST_STEP_SCORE)


def _vidcom2_keys(rows: Any, grids: Sequence[Grid], rate: float) -> list[tuple[Any, bool]]:
    """How alike each token is to its video and its frame, then whether it is within its frame's share; both [tokens].

    What is within the shares comes first, what is least alike before others; so cutting at the exact count
    drops the most alike where shares add up to more, and adds the least alike where to less.
    """
    similarities, within = [], []
    start = 0
    for grid, group in groupby(grids):
        end = start + len(list(group)) * grid.tokens
        similarity, share = _vidcom2(rows[start:end].view(-1, grid.tokens, rows.shape[-1]), grid, rate)
        places = similarity.sort(dim=-1, stable=True).indices.argsort(dim=-1)
        similarities.append(similarity.flatten())
        within.append((places < share.unsqueeze(-1)).flatten())
        start = end
    return [(torch.cat(similarities), False), (torch.cat(within).byte(), True)]


def _vidcom2(rows: Any, grid: Grid, rate: float) -> tuple[Any, Any]:
    """Similarity [videos, pairs, tokens per pair] of videos of one size, and each pair's share [videos, pairs]."""
    half = max(1, rows.shape[-1] // 2)
    calm = rows.var(dim=1, unbiased=False).topk(half, largest=False).indices
    tokens = rows.gather(2, calm.unsqueeze(1).expand(-1, grid.tokens, -1))
    tokens = torch.nn.functional.normalize(tokens.view(len(rows), grid.pairs, grid.tokens_per_pair, half), dim=-1)
    centres = tokens.mean(dim=(1, 2), keepdim=True), tokens.mean(dim=2, keepdim=True)
    to_video, to_pair = _closeness(torch.stack([((tokens - centre) ** 2).sum(dim=-1) for centre in centres]))
    distinct = -to_video.mean(dim=-1)
    weights = torch.softmax((distinct - distinct.amax(-1, keepdim=True)) / TEMPERATURE, dim=-1)
    scales = ((1.0 - rate) * (1.0 + weights - weights.mean(-1, keepdim=True))).clamp(max=1.0)
    shares = (scales * grid.tokens_per_pair).round().long().clamp(1, grid.tokens_per_pair)
    return to_video + to_pair, shares


def _closeness(squared: Any) -> Any:
    """Sum of Gaussians of squared distances over the bandwidths; added one by one, as upstream does and rounds."""
    negative = -squared
    return sum(
        (torch.exp(negative / (2.0 * bandwidth)) for bandwidth in BANDWIDTHS[1:]),
        start=torch.exp(negative / (2.0 * BANDWIDTHS[0])),
    )
