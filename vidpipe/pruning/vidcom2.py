"""VidCom2: drop what is close to the video's and to its own frame's centre; distinctive frames keep more.

Source: vLLM `multimodal/video_prune/vidcom2.py`, `compute_retention_mask` (after Liu et al.,
EMNLP 2025, arXiv 2505.14454).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from vidpipe.pruning.counts import vidcom2_count

Floats = npt.NDArray[np.floating]
BANDWIDTHS = (0.125, 0.25, 0.5, 1.0, 2.0)
TEMPERATURE = 0.01
EPSILON = 1e-12


def vidcom2_scores(embeddings: Floats, steps: int) -> tuple[Floats, Floats]:
    """Similarity to the video's centre and to the frame's, both [steps, tokens a step]; small means distinctive.

    Only the half of the channels that varies least is looked at.

    Args:
        embeddings: [tokens, channels], in order of time, then row, then column.
        steps: Temporal patches.
    """
    channels = embeddings.shape[-1]
    calm = np.argsort(embeddings.var(axis=0), kind="stable")[: max(1, channels // 2)]
    tokens = embeddings[:, calm].reshape(steps, -1, len(calm))
    tokens = tokens / np.maximum(np.sqrt((tokens * tokens).sum(axis=-1, keepdims=True)), EPSILON)
    return (
        _closeness(tokens, tokens.mean(axis=(0, 1), keepdims=True)),
        _closeness(tokens, tokens.mean(axis=1, keepdims=True)),
    )


def vidcom2_mask(embeddings: Floats, steps: int, rate: float) -> npt.NDArray[np.bool_]:
    """Which tokens stay, [tokens].

    Each temporal patch gets a share by how far it is from the centre; then the total is
    brought to the exact count over the whole clip, which may leave a patch with nothing.
    Of equal scores the earlier token stays (upstream leaves that open).

    Args:
        embeddings: [tokens, channels], in order of time, then row, then column.
        steps: Temporal patches.
        rate: Share to drop.
    """
    if len(embeddings) == 0:
        return np.zeros(0, dtype=np.bool_)
    to_video, to_frame = vidcom2_scores(embeddings, steps)
    similarity = to_video + to_frame
    tokens_per_step = similarity.shape[1]
    mask = np.zeros(similarity.shape, dtype=np.bool_)
    for step, share in enumerate(_shares(to_video, tokens_per_step, rate)):
        mask[step, np.argsort(similarity[step], kind="stable")[:share]] = True
    # What is within the shares comes first, what is least alike before the rest: cut at the count, that drops the
    # most alike where the shares add up to more, and adds the least alike where to less.
    order = np.lexsort((similarity.reshape(-1), ~mask.reshape(-1)))
    kept = np.zeros(mask.size, dtype=np.bool_)
    kept[order[: vidcom2_count(tokens_per_step, steps, rate)]] = True
    return kept


def _shares(to_video: Floats, tokens_per_step: int, rate: float) -> list[int]:
    """Tokens that each temporal patch keeps before the total is brought right: 1 to all."""
    distinct = -to_video.mean(axis=1)
    weights = np.exp((distinct - distinct.max()) / TEMPERATURE)
    weights = weights / weights.sum()
    scales = np.minimum((1.0 - rate) * (1.0 + weights - weights.mean()), 1.0)
    shares: list[int] = np.clip((scales * tokens_per_step).round().astype(np.int64), 1, tokens_per_step).tolist()
    return shares


def _closeness(tokens: Floats, centre: Floats) -> Floats:
    """Sum of Gaussians of the distance to `centre` over the bandwidths."""
    squared: Floats = ((tokens - centre) ** 2).sum(axis=-1)
    total = np.zeros_like(squared)
    for bandwidth in BANDWIDTHS:
        total += np.exp(-squared / (2.0 * bandwidth))
    return total
