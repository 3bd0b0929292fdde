"""Moss-VL's layout against the installed SGLang's own processor and model code, on the CPU: `make test-sglang`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.checkpoints import moss_vl as checkpoint
from tests.engine.test_moss_prepare import QUESTION, ask, prompt, video
from vidpipe.engine import torchvision_on_cpu
from vidpipe.engine.sglang_prepare import SglangPreparer, _renderers
from vidpipe.models import moss_vl_layout as ours

pytestmark = [pytest.mark.sglang, pytest.mark.skipif(find_spec("sglang") is None, reason="make test-sglang")]

IMAGE, MERGE = 9, 2
Grid = tuple[int, int, int]
GRIDS = st.lists(
    st.tuples(st.integers(1, 6), st.integers(1, 6).map(lambda n: 2 * n), st.integers(1, 6).map(lambda n: 2 * n)),
    min_size=1,
    max_size=3,
)


@pytest.fixture(scope="module", autouse=True)
def _torchvision() -> None:
    torchvision_on_cpu.install()


def processor() -> Any:
    """SGLang's processor with what its layout needs, without a server around it."""
    from vidpipe.engine.sglang_plugin.moss_vl import PreparedMossVL

    class Bare(PreparedMossVL):
        spatial_merge_size, image_token_id, vision_seq_pad_multiple = MERGE, IMAGE, 1
        image_only_mm_tokens = None

        def __init__(self) -> None:
            self._prepare_mm_items_for_transport = lambda items: items

    return Bare()


def model(separator: float = -1.0, width: int = 1) -> Any:
    import torch
    from sglang.srt.models.moss_vl import MossVLForConditionalGeneration

    made = MossVLForConditionalGeneration.__new__(MossVLForConditionalGeneration)
    torch.nn.Module.__init__(made)
    made.spatial_merge_size, made.vision_seq_pad_multiple = MERGE, 1
    made.separator_token = torch.nn.Parameter(torch.full((width,), separator))
    return made


@st.composite
def prompts(draw: st.DrawFn) -> tuple[list[int], list[Grid]]:
    """A prompt with an image token for each frame, and grids."""
    grids = draw(GRIDS)
    ids: list[int] = []
    for _ in range(sum(frames for frames, _, _ in grids)):
        ids += [1] * draw(st.integers(0, 4)) + [IMAGE]
    return [*ids, *[1] * draw(st.integers(1, 4))], grids


@settings(max_examples=60)
@given(prompts())
def test_what_the_scheduler_gets_of_a_request(case: tuple[list[int], list[Grid]]) -> None:
    import torch

    ids, grids = case
    media = [{"pixel_values": torch.zeros(1), "grid_thw": torch.tensor(grids)}]
    found = asyncio.run(processor().process_mm_data_async(media, ids, None, max_req_input_len=99))
    assert found.input_ids == ids and found.im_token_id == IMAGE
    assert found.visible_frame_counts.tolist() == ours.visible_frames(ids, IMAGE)
    positions = ours.position_metadata(ids, IMAGE, grids, MERGE)
    np.testing.assert_array_equal(found.mrope_positions.numpy(), positions.text)
    np.testing.assert_array_equal(found.vision_position_ids.numpy(), positions.vision)
    (item,) = found.mm_items
    assert item.is_image() and item.grid_thw.tolist() == [list(grid) for grid in grids]
    assert item.vision_token_info["total_length"] == ours.encoder_length(grids, MERGE)
    assert [part["start"] for part in item.vision_token_info["medias"]] == [
        slots.start for slots in ours.media_slots(grids, MERGE)
    ]


def test_a_request_without_media() -> None:
    found = asyncio.run(processor().process_mm_data_async(None, [1, 2, 3], None))
    assert found.mm_items == [] and found.visible_frame_counts is None and found.vision_position_ids is None
    assert found.mrope_positions.tolist() == [[0, 1, 2]] * 3 and found.mrope_position_delta.tolist() == [[0]]


@pytest.mark.parametrize("ids", [[1, 1], [IMAGE, 1, IMAGE]])
def test_as_many_image_tokens_as_frames(ids: list[int]) -> None:
    import torch

    media = [{"pixel_values": torch.zeros(1), "grid_thw": torch.tensor([[1, 2, 2]])}]
    with pytest.raises(ValueError, match="one-to-one"):
        asyncio.run(processor().process_mm_data_async(media, ids, None))


@settings(max_examples=60)
@given(GRIDS)
def test_encoder_lengths_and_separators(grids: list[Grid]) -> None:
    import torch

    made, length = model(), ours.encoder_length(grids, MERGE)
    items = [SimpleNamespace(grid_thw=torch.tensor(grids), pad_value=77)]
    inputs = SimpleNamespace(mm_items=items, num_image_tokens=None)
    padded = made.pad_input_ids(made._build_encoder_prefix_pad_ids(SimpleNamespace(mm_items=[])), inputs)
    assert inputs.num_image_tokens == length and padded.tolist() == [77] * length
    tokens = torch.arange(length - sum(frames for frames, _, _ in grids), dtype=torch.float32)[:, None]
    with torch.no_grad():
        laid_out = made._insert_separator_tokens(tokens, torch.tensor(grids))
    assert laid_out[:, 0].tolist() == ours.with_separators(grids, MERGE)


@settings(max_examples=60)
@given(prompts(), st.data())
def test_which_slots_each_token_sees(case: tuple[list[int], list[Grid]], data: st.DataObject) -> None:
    import torch

    ids, grids = case
    begin = data.draw(st.integers(0, len(ids) - 1))
    length, visible = ours.encoder_length(grids, MERGE), ours.visible_frames(ids, IMAGE)
    batch = forward_batch(visible, grids, begin, len(ids) - begin)
    mask = model()._build_cross_attention_custom_mask(batch).view(-1, length)
    wanted = ours.visible_slots(visible[begin:], grids, MERGE)
    assert [row.nonzero().flatten().tolist() for row in mask] == [list(range(count)) for count in wanted]
    rows = model().get_full_text_row_masked_out_mask(batch).flatten().tolist()
    assert rows == [frames > 0 for frames in visible[begin:]]
    left = batch.mm_inputs[0].visible_frame_counts
    assert torch.equal(left, torch.tensor(visible[-1:], dtype=torch.int32))  # what makes a second prefill impossible


def forward_batch(visible: Sequence[int], grids: Sequence[Grid], begin: int, count: int) -> Any:
    import torch

    inputs = SimpleNamespace(
        mm_items=[SimpleNamespace(grid_thw=torch.tensor(grids))],
        visible_frame_counts=torch.tensor(visible, dtype=torch.int32),
    )
    return SimpleNamespace(
        batch_size=1,
        encoder_lens_cpu=[ours.encoder_length(grids, MERGE)],
        extend_seq_lens_cpu=[count],
        extend_seq_lens=torch.tensor([count]),
        extend_prefix_lens_cpu=[begin],
        seq_lens=torch.tensor([begin + count]),
        mm_inputs=[inputs],
        forward_mode=SimpleNamespace(is_decode=lambda: False),
    )


def test_a_request_computed_again_fails_and_gives_no_answer() -> None:
    """What happens to a request that SGLang has taken back, with its prompt still in the prefix cache."""
    visible, grids = [0, 1, 2, 2, 2, 2], [(2, 4, 4)]
    batch = forward_batch(visible, grids, 0, 6)
    made = model()
    made.get_full_text_row_masked_out_mask(batch)
    batch.extend_prefix_lens_cpu, batch.extend_seq_lens_cpu = [5], [1]
    with pytest.raises(RuntimeError, match="must match the existing size"):
        made.get_full_text_row_masked_out_mask(batch)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("moss_vl")
    checkpoint.make(folder)
    return folder


@pytest.mark.parametrize(("frames", "width", "height"), [(1, 64, 64), (3, 90, 70), (7, 33, 200)])
def test_as_sglangs_own_processor_makes_it_of_the_whole_prompt(
    folder: Path, frames: int, width: int, height: int
) -> None:
    """Its own takes a text and a file; here the file's place is taken by the same frames."""
    from sglang.srt.multimodal.processors.moss_vl import MossVLImageProcessor

    from vidpipe.engine.sglang_moss_vl import _frames_in_place_of_files

    preparer = SglangPreparer(str(folder), trust_remote_code=True)
    shown = video(folder, frames, width, height)
    made = prompt(ask(preparer, (shown,), QUESTION)[0])
    renderer = _renderers[preparer]
    whole = processor()
    whole.image_token_id = renderer._token_id("<|image_pad|>")
    text = f"<|im_start|>user\n<|video|>{QUESTION}<|im_end|>\n<|im_start|>assistant\n"
    whole.process_mm_data = lambda input_text, images, videos: renderer._processor(
        text=[input_text], videos=videos, return_tensors="pt"
    )

    async def no_images(prompt: str, **rest: Any) -> Any:
        return SimpleNamespace(input_text=prompt, images=None)

    async def paths(videos: Any) -> Any:
        return videos, []

    whole.load_mm_data, whole._normalize_video_inputs_async = no_images, paths
    times_s = [tick / 4 for tick in shown.metadata["frames_indices"]]
    with _frames_in_place_of_files(renderer._processor.video_processor, shown, times_s):
        request = SimpleNamespace(video_data=["file"])
        theirs = asyncio.run(MossVLImageProcessor.process_mm_data_async(whole, None, text, request))
    found = asyncio.run(whole.process_mm_data_async(made.media["image_data"], list(made.token_ids), None))
    assert theirs.input_ids == found.input_ids
    for name in ("mrope_positions", "mrope_position_delta", "vision_position_ids", "visible_frame_counts"):
        assert getattr(theirs, name).tolist() == getattr(found, name).tolist(), name
    assert (theirs.mm_items[0].feature == found.mm_items[0].feature).all()
    assert theirs.mm_items[0].vision_token_info == found.mm_items[0].vision_token_info
    assert theirs.media_nums_per_sample == found.media_nums_per_sample
