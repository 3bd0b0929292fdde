from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidpipe.models.qwen3_vl_prompt import Ids
from vidpipe.pruning.counts import COUNTS
from vidpipe.pruning.evs import evs_mask, evs_scores
from vidpipe.pruning.pixels import pixel_embedding
from vidpipe.pruning.positions import pruned_video
from vidpipe.pruning.vidcom2 import vidcom2_mask

CONTROL = Ids(vision_start=1, vision_end=2, video=3)


@pytest.mark.parametrize(("method", "rule"), [("evs", evs_mask), ("vidcom2", vidcom2_mask)])
@given(st.integers(1, 6), st.integers(1, 9), st.floats(0.01, 0.99), st.integers(0, 10**6))
def test_masks_have_the_promised_count(
    method: str, rule: Callable[..., np.ndarray], steps: int, tokens: int, rate: float, seed: int
) -> None:
    embeddings = np.random.default_rng(seed).normal(size=(steps * tokens, 8))
    assert rule(embeddings, steps, rate).sum() == COUNTS[method](tokens, steps, rate)


@pytest.mark.parametrize("rule", [evs_mask, vidcom2_mask])
def test_only_the_directions_of_embeddings_count(rule: Callable[..., np.ndarray]) -> None:
    embeddings = np.random.default_rng(1).normal(size=(6 * 9, 8))
    assert (rule(embeddings * 2.0**-10, 6, 0.5) == rule(embeddings, 6, 0.5)).all()
    dark = np.concatenate([embeddings, np.zeros((9, 8))])
    assert np.isfinite(evs_scores(dark, 7)).all(), "no length to divide by"


def test_vidcom2_of_nothing_is_nothing() -> None:
    assert vidcom2_mask(np.zeros((0, 8)), 0, 0.5).shape == (0,)


def test_evs_keeps_the_first_step_and_what_moves() -> None:
    frames = np.zeros((6, 64, 64, 3), np.uint8)
    for number in range(6):
        frames[number, 32:, 32:] = 40 * number  # only the lower right moves
    mask = evs_mask(pixel_embedding(frames, 3, 2, 2), 3, 0.5).reshape(3, 2, 2)
    assert mask[0].all() and mask[1:, 1, 1].all() and mask.sum() == 6


def test_pixel_embeddings_fill_the_last_step() -> None:
    frames = np.arange(3, dtype=np.uint8)[:, None, None, None] * np.ones((1, 8, 8, 3), np.uint8)
    embeddings = pixel_embedding(frames, 2, 1, 1)
    assert embeddings.shape == (2, 2 * 4 * 4 * 3)
    assert (embeddings[1] == embeddings[1, 0]).all()


def video(steps: int, side: int, mask: np.ndarray) -> object:
    return pruned_video(
        mask, (steps, 2 * side, 2 * side), 2, ["<0.0 seconds>"] * steps, lambda t: [9] * len(t), CONTROL
    )


def test_kept_tokens_keep_their_places() -> None:
    everything = video(3, 2, np.ones(12, bool))
    mask = np.array([1, 0, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1], bool)
    some = video(3, 2, mask)
    rows = everything.local[:, 4] == 1
    assert some.ids.count(3) == 6
    assert (some.local[some.local[:, 4] == 1] == everything.local[rows][mask]).all()
    assert (some.local[some.local[:, 4] == 0] == everything.local[~rows]).all()
