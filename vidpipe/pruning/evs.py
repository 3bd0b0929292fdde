"""Efficient Video Sampling: drop what looks like the same place in the temporal patch before.

Source: vLLM `multimodal/video_prune/evs.py`, `compute_retention_mask`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from vidpipe.pruning.counts import evs_count

Floats = npt.NDArray[np.floating]
FIRST_STEP_SCORE = 255.0
EPSILON = 1e-8


def evs_scores(embeddings: Floats, steps: int) -> Floats:
    """How much each token differs from the one before it at its place, [tokens]; the first patch's score 255.

    Args:
        embeddings: [tokens, channels], in order of time, then row, then column.
        steps: Temporal patches.
    """
    tokens = embeddings.reshape(steps, -1, embeddings.shape[-1])
    lengths = np.maximum(np.sqrt((tokens * tokens).sum(axis=-1, keepdims=True)), EPSILON)
    directions = tokens / lengths
    scores = np.full(tokens.shape[:2], FIRST_STEP_SCORE, dtype=embeddings.dtype)
    scores[1:] = 1 - (directions[1:] * directions[:-1]).sum(axis=-1)
    return scores.reshape(-1)


def evs_mask(embeddings: Floats, steps: int, rate: float) -> npt.NDArray[np.bool_]:
    """Which tokens stay, [tokens]: those with the largest scores, of equal ones the earlier.

    Frames that stand still give scores of pure rounding noise, so which of their tokens
    stay depends on the arithmetic; the number does not.

    Args:
        embeddings: [tokens, channels], in order of time, then row, then column.
        steps: Temporal patches.
        rate: Share to drop.
    """
    order = np.argsort(-evs_scores(embeddings, steps), kind="stable")
    mask = np.zeros(len(embeddings), dtype=np.bool_)
    mask[order[: evs_count(len(embeddings) // steps, steps, rate)]] = True
    return mask
