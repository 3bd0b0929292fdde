"""Positions of pruned prompts: every fault of upstream's class, and the same prompts under ours.

Upstream's methods and ours run on made-up clips (`rehearsal`); the truth is upstream's own
layout of the whole prompt, of which kept rows keep their positions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parity.vectors import Case, cases
from vidpipe.engine import vllm_environment
from vidpipe.engine.vllm_plugin.encoder_batches import batches
from vidpipe.engine.vllm_plugin.pruned_positions import Item, Piece, initial_positions, write_pieces
from vidpipe.engine.vllm_plugin.rehearsal import Clip, Rehearsal, half_kept
from vidpipe.engine.vllm_plugin.row_channels import number_channels, piece_of, place_channels
from vidpipe.pruning.counts import positions_taken

pytestmark = pytest.mark.engine

FLOAT, BFLOAT, HALF = torch.float32, torch.bfloat16, torch.float16
OUTER = (False, True)


@pytest.fixture(scope="module")
def classes() -> dict[str, Any]:
    vllm_environment.prepare("")
    from vllm.model_executor.models.qwen3_vl import Qwen3VLForConditionalGeneration

    from vidpipe.engine.vllm_plugin.pruned_qwen3_vl_model import PrunedQwen3VL, PrunedQwen3VLMoe

    return {"upstream": Qwen3VLForConditionalGeneration, "ours": PrunedQwen3VL, "moe": PrunedQwen3VLMoe}


def rehearse(model: Any, *pairs: int, dtype: Any = FLOAT, outer_start: bool = False) -> Rehearsal:
    return Rehearsal(model, [half_kept(number) for number in pairs], dtype, outer_start=outer_start)


def test_upstream_is_right_where_nothing_is_asked_of_it(classes: dict[str, Any]) -> None:
    """So that the faults below are the ones that they are named after."""
    assert rehearse(classes["upstream"], 6).is_right()


def test_outer_vision_start(classes: dict[str, Any]) -> None:
    assert not rehearse(classes["upstream"], 6, outer_start=True).is_right()
    assert rehearse(classes["ours"], 6, outer_start=True).is_right()


def test_positions_above_256_in_bfloat16(classes: dict[str, Any]) -> None:
    assert rehearse(classes["upstream"], 32).is_right()
    assert not rehearse(classes["upstream"], 32, dtype=BFLOAT).is_right()
    for dtype in (BFLOAT, HALF):
        assert rehearse(classes["ours"], 32, dtype=dtype).is_right()


def right_cuts(prompt: Rehearsal) -> int:
    return sum(prompt.is_right([cut]) for cut in range(1, len(prompt.ids)))


def right_hits(prompt: Rehearsal) -> int:
    """Cached prefixes of every length, with a runner of each kind."""
    lengths = range(1, len(prompt.ids))
    return sum(prompt.is_right(cached=n) and prompt.is_right(cached=n, always_asked=False) for n in lengths)


def test_every_cut(classes: dict[str, Any]) -> None:
    upstream = rehearse(classes["upstream"], 4)
    assert right_cuts(upstream) < len(upstream.ids) / 2
    for outer_start in OUTER:
        ours = rehearse(classes["ours"], 4, dtype=BFLOAT, outer_start=outer_start)
        assert right_cuts(ours) == len(ours.ids) - 1


def test_every_cached_prefix(classes: dict[str, Any]) -> None:
    upstream = rehearse(classes["upstream"], 4)
    assert right_hits(upstream) < len(upstream.ids) / 2
    assert not upstream.is_right(cached=len(upstream.ids) - 2)  # the whole clip and some of the question
    for outer_start in OUTER:
        ours = rehearse(classes["ours"], 4, dtype=BFLOAT, outer_start=outer_start)
        assert right_hits(ours) == len(ours.ids) - 1


def test_two_clips(classes: dict[str, Any]) -> None:
    assert not rehearse(classes["upstream"], 6, 4).is_right()
    for outer_start in OUTER:
        ours = rehearse(classes["ours"], 3, 2, dtype=BFLOAT, outer_start=outer_start)
        assert ours.is_right() and right_cuts(ours) == right_hits(ours) == len(ours.ids) - 1


def test_the_mixture_of_experts_is_repaired_the_same_way(classes: dict[str, Any]) -> None:
    prompt = rehearse(classes["moe"], 6, 4, dtype=BFLOAT, outer_start=True)
    assert prompt.is_right([50, 130]) and prompt.is_right(cached=100)


@given(data=st.data())
@settings(max_examples=30)
def test_any_clips_masks_cuts_and_cached_prefixes(classes: dict[str, Any], data: st.DataObject) -> None:
    clips = []
    for _ in range(data.draw(st.integers(1, 3))):
        pairs, side = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
        mask = torch.tensor(data.draw(st.lists(st.booleans(), min_size=pairs * side**2, max_size=pairs * side**2)))
        mask[data.draw(st.integers(0, len(mask) - 1))] = True  # both methods keep one token at least
        clips.append(Clip(pairs, side, mask))
    text = data.draw(st.integers(1, 4))
    prompt = Rehearsal(classes["ours"], clips, BFLOAT, outer_start=data.draw(st.booleans()), text=text)
    cached = data.draw(st.integers(0, len(prompt.ids) - 1))
    cuts = (
        sorted(data.draw(st.sets(st.integers(cached + 1, len(prompt.ids) - 1), max_size=4)))
        if cached < len(prompt.ids) - 1
        else []
    )
    assert prompt.is_right(cuts, cached=cached, always_asked=data.draw(st.booleans()))


def test_recomputing_twice_changes_nothing(classes: dict[str, Any]) -> None:
    """V1 keeps the positions of a preempted request and has them recomputed when it runs again."""
    prompt = rehearse(classes["ours"], 6, dtype=BFLOAT)
    model, rows = prompt.model, prompt.rows
    first = model.get_mrope_input_positions(prompt.ids, prompt.features)
    once = model.recompute_mrope_positions(prompt.ids, rows, first[0], 0)
    twice = model.recompute_mrope_positions(prompt.ids, rows, once[1], 0)
    assert torch.equal(once[1], twice[1]) and first[1] == once[2] == twice[2]
    assert once[0][0].shape == (len(rows[0]), 4)  # channels are gone


def test_images_stand_right_from_the_start_and_need_no_rows(classes: dict[str, Any]) -> None:
    prompt = rehearse(classes["ours"], 4)
    embeddings = (torch.ones(9, 4, dtype=BFLOAT),)
    (image,) = prompt.model._postprocess_image_embeds_evs(embeddings, None)
    stripped, positions, _ = prompt.model.recompute_mrope_positions(
        [9] * 12, [image], torch.arange(36).reshape(3, 12), 0
    )
    assert torch.equal(stripped[0], embeddings[0]) and torch.equal(positions, torch.arange(36).reshape(3, 12))
    items = [Item(2, 6, (1, 2, 3), is_video=False)]
    positions = initial_positions(np.array([9, 9, *[3] * 6, 9]), items, video_id=4)
    assert positions[:, 2:8].tolist() == [[2] * 6, [2, 2, 2, 3, 3, 3], [2, 3, 4, 2, 3, 4]]
    assert positions[:, 8].tolist() == [5, 5, 5]


def test_without_pruning_upstream_answers(classes: dict[str, Any]) -> None:
    prompt = rehearse(classes["ours"], 4)
    prompt.model.is_multimodal_pruning_enabled = False
    ours = prompt.model.get_mrope_input_positions(prompt.ids, prompt.features)
    upstream = classes["upstream"]._get_mrope_input_positions(prompt.ids, prompt.features, prompt.model.config)
    assert torch.equal(ours[0], upstream[0]) and ours[1] == upstream[1]
    assert prompt.model._postprocess_image_embeds_evs((1,), None) == (1,)


def test_rows_of_no_video_are_refused() -> None:
    piece = Piece(np.zeros((3, 2), np.int64), 0, 1)
    with pytest.raises(ValueError, match="fit nowhere"):
        write_pieces(np.zeros((3, 5), np.int64), np.full(5, 9), [piece], 4, 0)


LAYOUTS = {
    (
        str(c.expected["initial_positions"]),
        str(np.array(c.expected["local_positions_t_h_w_isstart_isvideo"]).T.tolist()),
    ): c
    for c in cases("qwen3vl_evs_positions")
}


def layout_of(recomputed: Case) -> Case | None:
    """The vector about the same clip, which knows its grid."""
    return LAYOUTS.get((str(recomputed.input["initial_positions"]), str(recomputed.input.get("media_positions_5ch"))))


@pytest.mark.parametrize("recomputed", filter(layout_of, cases("evs_recompute_mrope")), ids=str)
def test_golden_vectors(recomputed: Case) -> None:
    """Upstream's own results where it is right: one clip, one chunk, no outer vision start, float32.

    With fewer kept tokens than one grid upstream's positions are longer than the prompt; the rest is right.
    """
    layout = layout_of(recomputed)
    assert layout is not None
    ids, control = np.array(recomputed.input["input_ids"]), recomputed.input["ids"]
    (t, h, w), start = layout.input["grid_thw"], layout.input["prefix"]
    item = Item(start, layout.expected["placeholder_length"], (t, h // 2, w // 2), is_video=True)
    positions = initial_positions(ids, [item], control["video"])
    channels = np.array(recomputed.input["media_positions_5ch"])
    write_pieces(positions, ids, [Piece(channels[:3], 0, int(channels[3].argmax()))], control["video"], 0)
    assert positions.tolist() == [axis[: len(ids)] for axis in recomputed.expected["positions"]]


def test_rows_carry_any_position_in_16_bits() -> None:
    local = np.array([[0, 257, 1_000_001], [255, 65_535, 2**24 - 1], [256, 65_536, 7]])
    channels = torch.from_numpy(place_channels(local, lead=1) + number_channels(3))
    for dtype in (BFLOAT, HALF, FLOAT):
        rows = torch.cat([torch.zeros(3, 4, dtype=dtype), channels.to(dtype)], dim=1)
        piece = piece_of(rows[1:, 4:].to(torch.uint8).numpy())
        assert (
            piece is not None and piece.local.tolist() == local[:, 1:].tolist() and (piece.first, piece.lead) == (1, 1)
        )
    assert piece_of(np.zeros((0, 16), np.uint8)) is None and piece_of(np.zeros((2, 16), np.uint8)) is None


def test_the_second_runner_uses_it(classes: dict[str, Any]) -> None:
    """V2's `MultiModalPruner` with the class's own methods, two chunks of a prompt; its rope state is a stand-in."""
    from types import SimpleNamespace

    from vllm.v1.worker.gpu.model_states.mm_pruning import MultiModalPruner

    prompt = rehearse(classes["ours"], 6, dtype=BFLOAT, outer_start=True)
    cut, total = len(prompt.ids) // 2, len(prompt.ids)
    state: dict[str, Any] = dict(
        zip(("positions", "delta"), prompt.model.get_mrope_input_positions(prompt.ids, prompt.features), strict=True)
    )
    rope = SimpleNamespace(
        read_prefill_positions=lambda index, length: state["positions"].int()[:, :length],
        update_prefill_positions=lambda index, positions, delta: state.update(positions=positions, delta=delta),
    )
    pruner = MultiModalPruner(prompt.model, rope, SimpleNamespace(mm_features={"r": prompt.features}), 4)
    requests = SimpleNamespace(all_token_ids=SimpleNamespace(gpu=torch.tensor([prompt.ids], dtype=torch.int32)))
    used = []
    for begin, end in ((0, cut), (cut, total)):
        batch = SimpleNamespace(
            req_ids=["r"],
            idx_mapping_np=np.array([0]),
            prefill_len_np=np.array([total]),
            num_computed_prefill_tokens_np=np.array([begin]),
            num_scheduled_tokens=np.array([end - begin]),
        )
        rows = prompt._window(0, begin, end)
        (cleaned,) = pruner.recompute([rows], batch, requests)
        assert cleaned.shape == (len(rows), 4) and pruner.strip([rows])[0].shape == (len(rows), 4)
        used.append(state["positions"][:, begin:end])
    assert np.array_equal(torch.cat(used, dim=1).numpy(), prompt.truth)
    assert state["delta"] == prompt.truth.max() + 1 - total


@given(pairs=st.integers(1, 6), side=st.integers(1, 4))
@settings(max_examples=20)
def test_the_count_of_positions_is_where_the_next_token_stands(classes: dict[str, Any], pairs: int, side: int) -> None:
    clip = half_kept(pairs, side)
    prompt = Rehearsal(classes["ours"], [clip], BFLOAT, outer_start=True)
    assert positions_taken(len(prompt.ids), int(clip.mask.sum()), pairs, side, side) == prompt.truth[:, -1].max() + 1


@given(sizes=st.lists(st.integers(1, 50), max_size=12), limit=st.integers(1, 100))
def test_batches_of_the_encoder_stay_within_the_limit(sizes: list[int], limit: int) -> None:
    found = batches(sizes, limit)
    assert [place for batch in found for place in batch] == list(range(len(sizes)))
    assert all(len(batch) == 1 or sum(sizes[place] for place in batch) <= limit for batch in found)
    firsts = [sum(sizes[place] for place in batch) + sizes[batch.stop] for batch in found if batch.stop < len(sizes)]
    assert all(total > limit for total in firsts), "no batch is smaller than it must be"


def test_pruned_videos_are_encoded_in_batches_that_memory_was_measured_for(classes: dict[str, Any]) -> None:
    model = rehearse(classes["ours"], 1).model
    calls: list[int] = []

    class Encoder:
        spatial_merge_size, dtype = 2, FLOAT

        def __call__(self, pixels: Any, grid_thw: Any) -> Any:
            calls.append(len(pixels) // 4)
            return pixels[::4]

    object.__setattr__(model, "visual", Encoder())
    model.use_data_parallel, model.encoder_batch_tokens = False, 10
    grids = torch.tensor([[1, 4, 4], [2, 4, 4], [4, 4, 4], [1, 4, 4]])  # 4, 8, 16 and 4 tokens
    pixels = torch.arange(int(grids.prod(-1).sum())).unsqueeze(1)
    given = {"type": "pixel_values_videos", "pixel_values_videos": pixels, "video_grid_thw": grids}
    ours = model._process_video_input(given)
    assert calls == [4, 8, 16, 4]
    model.is_multimodal_pruning_enabled = False
    upstream = model._process_video_input(given)
    assert calls[4:] == [32] and all(map(torch.equal, ours, upstream))
