"""Pruning of many videos together: the tokens and rows that upstream makes one by one, at a bounded cost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from tests.parity.vectors import Case, cases
from vidpipe.engine import vllm_environment
from vidpipe.engine.vllm_plugin.rehearsal import MERGE, Rehearsal, half_kept
from vidpipe.pruning.evs import evs_mask
from vidpipe.pruning.vidcom2 import vidcom2_mask

pytestmark = pytest.mark.engine

HIDDEN, LEVELS = 8, 3
METHODS = ("evs", "vidcom2")
Size = tuple[int, int, int]


@pytest.fixture(scope="module")
def upstream() -> Any:
    vllm_environment.prepare("")
    from vllm.model_executor.models.qwen3_vl import Qwen3VLForConditionalGeneration

    return Qwen3VLForConditionalGeneration


@pytest.fixture(scope="module")
def masks(upstream: Any) -> dict[str, Callable[..., Any]]:
    from vllm.multimodal.video_prune import evs, vidcom2

    return {"evs": evs.compute_retention_mask, "vidcom2": vidcom2.compute_retention_mask}


def mask_of(rows: Any, sizes: Sequence[Size], method: str, rate: float) -> list[Any]:
    """Which tokens of each video we keep, chosen for all videos in one call."""
    from vidpipe.engine.vllm_plugin.token_choice import kept_counts, kept_tokens
    from vidpipe.engine.vllm_plugin.video_layout import Grid

    grids = [Grid(t, h * w) for t, h, w in sizes]
    counts = kept_counts(grids, method, rate)
    kept = kept_tokens(rows, grids, counts, method, rate)
    mask = torch.zeros(len(rows), dtype=torch.bool)
    mask[kept] = True
    found = list(mask.split([grid.tokens for grid in grids]))
    assert [int(one.sum()) for one in found] == counts
    return found


sizes = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=5)
rates = st.sampled_from([0.1, 0.5, 0.75, 0.9, 1e-17]) | st.floats(0.01, 0.99)


@given(sizes, st.integers(6, 20), rates, st.sampled_from(["float32", "bfloat16", "float16"]), st.integers(0, 10**6))
@settings(max_examples=150, deadline=None)
def test_the_tokens_that_upstream_keeps(
    masks: dict[str, Callable[..., Any]], given_sizes: list[Size], channels: int, rate: float, dtype: str, seed: int
) -> None:
    """EVS: the very same, in every dtype, ties and all. VidCom2: upstream leaves ties open, so the same scores."""
    from vidpipe.engine.vllm_plugin.token_choice import _vidcom2
    from vidpipe.engine.vllm_plugin.video_layout import Grid

    tokens = [t * h * w for t, h, w in given_sizes]
    random = torch.Generator().manual_seed(seed)
    rows = torch.randn(sum(tokens), channels, generator=random).to(getattr(torch, dtype))
    for method in METHODS:
        ours = mask_of(rows, given_sizes, method, rate)
        for (t, h, w), mask, video in zip(given_sizes, ours, rows.split(tokens), strict=True):
            theirs = masks[method](video, (t, MERGE * h, MERGE * w), MERGE, rate)
            if method == "vidcom2":
                similarity = _vidcom2(video.unsqueeze(0), Grid(t, h * w), rate)[0].flatten()
                assert torch.equal(similarity[mask].sort().values, similarity[theirs].sort().values)
            else:
                assert torch.equal(mask, theirs)


@pytest.mark.parametrize("method", METHODS)
def test_golden_vectors(method: str) -> None:
    """All clips of as many channels and one rate in one call."""
    together: dict[tuple[int, float], list[Case]] = defaultdict(list)
    marks = ("stable_float64", *(("order_independent",) if method == "vidcom2" else ()))
    for case in cases(f"retention_mask_{method}"):
        if all(case.expected[mark] for mark in marks):
            together[case.input["channels"], case.input["q"]].append(case)
    assert max(map(len, together.values())) > 1
    for (channels, rate), found in together.items():
        rows = torch.cat([torch.tensor(case.input["embeds"]).reshape(-1, channels) for case in found])
        grids = [case.input["grid_thw"] for case in found]
        given_sizes = [(t, h // MERGE, w // MERGE) for t, h, w in grids]
        for case, mask in zip(found, mask_of(rows, given_sizes, method, rate), strict=True):
            assert mask.int().tolist() == case.expected["mask"], case.id


@pytest.mark.parametrize(("method", "rule"), [("evs", evs_mask), ("vidcom2", vidcom2_mask)])
@pytest.mark.parametrize("rate", [0.3, 0.5, 0.8])
def test_of_equal_scores_the_earlier_stays(method: str, rule: Callable[..., Any], rate: float) -> None:
    """Colours of which scores come out exact, so that many are equal."""
    given_sizes: list[Size] = [(8, 2, 4), (4, 2, 2), (4, 4, 2)]
    tokens = [t * h * w for t, h, w in given_sizes]
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (sum(tokens), 8))
    rows = torch.from_numpy(signs * [1, 1, 1, 1, 4, 4, 4, 4] if method == "vidcom2" else signs[:, :4])
    masks = mask_of(rows, given_sizes, method, rate)
    for (t, _, _), video, mask in zip(given_sizes, rows.split(tokens), masks, strict=True):
        assert mask.tolist() == rule(video.numpy(), t, rate).tolist()


class Input:
    """What `_postprocess_video_embeds_evs` reads of a batch of videos."""

    def __init__(self, given_sizes: Sequence[Size]) -> None:
        self.grids = torch.tensor([[t, MERGE * h, MERGE * w] for t, h, w in given_sizes])
        self.timestamps = [[0.5 + 9 * pair for pair in range(t)] for t, _, _ in given_sizes]

    def __getitem__(self, key: str) -> Any:
        return self.grids


def model_of(model_class: Any, method: str, device: str = "cpu") -> Any:
    """A model that prunes to half, with deepstack, and with rows of text that differ."""
    model = Rehearsal(model_class, [half_kept(1)], torch.float32, outer_start=False).model
    model.video_pruning_method, model.video_pruning_rate = method, 0.5
    model.use_deepstack, model.deepstack_num_level = True, LEVELS
    model.visual_dim, model.multiscale_dim = HIDDEN, LEVELS * HIDDEN
    table = torch.arange(10.0 * HIDDEN, device=device).reshape(10, HIDDEN)
    language = SimpleNamespace(embed_input_ids=lambda ids: torch.nn.functional.embedding(ids, table))
    object.__setattr__(model, "get_language_model", lambda: language)
    return model


def encoded(given_sizes: Sequence[Size], device: str = "cpu") -> Sequence[Any]:
    tokens = [t * h * w for t, h, w in given_sizes]
    shape = sum(tokens), HIDDEN * (1 + LEVELS)
    return torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(device).split(tokens)


@pytest.mark.parametrize("method", METHODS)
def test_rows_are_those_of_upstream(upstream: Any, method: str) -> None:
    """Embeddings, text and deepstack levels to the last bit; positions too. More videos than are pruned together."""
    from vidpipe.engine.vllm_plugin import pruned_rows
    from vidpipe.engine.vllm_plugin.graphed_qwen3_vl import GraphedQwen3VL
    from vidpipe.engine.vllm_plugin.row_channels import CHANNELS, piece_of

    given_sizes: list[Size] = [(3, 2, 3), (40, 8, 8), (1, 1, 1), (30, 8, 8), (4, 2, 2), (4, 2, 2)]
    assert sum(t * h * w for t, h, w in given_sizes) > pruned_rows.TOKENS_TOGETHER
    theirs = model_of(upstream, method)._postprocess_video_embeds_evs(encoded(given_sizes), Input(given_sizes))
    ours = model_of(GraphedQwen3VL, method)._postprocess_video_embeds_evs(encoded(given_sizes), Input(given_sizes))
    assert len({rows.untyped_storage().data_ptr() for rows in ours}) == len(given_sizes), "each is freed by itself"
    for mine, other in zip(ours, theirs, strict=True):
        assert torch.equal(mine[:, :-CHANNELS], other[:, :-5])
        piece = piece_of(mine[:, -CHANNELS:].to(torch.uint8).numpy())
        assert piece is not None and piece.local.T.tolist() == other[:, -5:-2].tolist()
        assert piece.first == 0 and piece.lead == int(other[:, -2].argmax())


class Counting(TorchDispatchMode):
    """Operations that a device would have to be asked for; changes of shape are none."""

    FREE = frozenset({"view", "split_with_sizes", "slice", "unsqueeze", "expand", "detach", "lift_fresh", "unbind"})

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()

    def __torch_dispatch__(self, operation: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        name = operation.overloadpacket.__name__
        if name not in self.FREE:
            self.found[name] += 1
        return operation(*arguments, **(named or {}))


OPERATIONS = {"evs": 27, "vidcom2": 74}
"""Of a call with videos of one size. Upstream takes 44 and 119 for each video, and waits 9 and 11 times."""


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("videos", [1, 2, 20])
def test_the_host_never_waits_and_asks_for_little(upstream: Any, method: str, videos: int) -> None:
    """The meta device has no values: whatever would read one, or a mask's size, raises."""
    from vidpipe.engine.vllm_plugin.graphed_qwen3_vl import GraphedQwen3VL

    model, given_sizes = model_of(GraphedQwen3VL, method, "meta"), [(8, 4, 4)] * videos
    rows, asked = encoded(given_sizes, "meta"), Input(given_sizes)
    with pytest.raises((NotImplementedError, RuntimeError)):
        rows[0][rows[0][:, 0] > 0]
    with Counting() as counting:
        found = model._postprocess_video_embeds_evs(rows, asked)
    assert [len(one) for one in found] == [64 + sum(counting_text(asked, n)) for n in range(videos)]
    assert counting.found.total() <= OPERATIONS[method] + videos, counting.found
    assert counting.found["_to_copy"] <= 5, "two copies to the device, one of them for channels"


def counting_text(asked: Input, number: int) -> list[int]:
    """Rows of text of each pair, vision start and end included; a token is a letter here."""
    return [len(f"<{time_s:.1f} seconds>") + 2 for time_s in asked.timestamps[number]]


def test_time_texts_are_tokenised_once(upstream: Any) -> None:
    from vidpipe.engine.vllm_plugin.graphed_qwen3_vl import GraphedQwen3VL

    model, given_sizes = model_of(GraphedQwen3VL, "evs"), [(3, 1, 1), (4, 1, 2)]
    asked: list[str] = []

    class Tokenizer:
        def encode(self, text: str, add_special_tokens: bool) -> list[int]:
            asked.append(text)
            return [9, 9]

    model._tokenizer = Tokenizer()
    for _ in range(2):
        model._postprocess_video_embeds_evs(encoded(given_sizes), Input(given_sizes))
    assert asked == [f"<{0.5 + 9 * pair:.1f} seconds>" for pair in range(4)]


def test_positions_wait_once(upstream: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many videos stand in the step."""
    from vidpipe.engine.vllm_plugin import pruned_qwen3_vl_model

    prompt = Rehearsal(
        pruned_qwen3_vl_model.PrunedQwen3VL, [half_kept(3), half_kept(2)], torch.bfloat16, outer_start=True
    )
    positions = prompt.model.get_mrope_input_positions(prompt.ids, prompt.features)[0]
    waits: list[int] = []
    to_host = pruned_qwen3_vl_model.to_host
    monkeypatch.setattr(pruned_qwen3_vl_model, "to_host", lambda read: waits.append(len(read)) or to_host(read))
    with Counting() as counting:
        prompt.model.recompute_mrope_positions(torch.tensor(prompt.ids), prompt.rows, positions, 0)
    assert waits == [4], "positions, ids and the channels of both"
    assert not counting.found.keys() & {"_local_scalar_dense", "nonzero", "index"}
