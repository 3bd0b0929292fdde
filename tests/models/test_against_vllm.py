"""Our rules against the functions of the installed vLLM and transformers, over random inputs."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from vidpipe.engine import torchvision_on_cpu, vllm_environment
from vidpipe.errors import EngineError, MediaError
from vidpipe.models import ernie45_vl, ernie45_vl_sampling, llava_onevision2, minimax_m3, qwen3_vl
from vidpipe.models.clock import FrameClock
from vidpipe.models.indices import qwen2_vl_indices, spread_float32, steps_float32
from vidpipe.models.resize import qwen2_vl_resize
from vidpipe.models.trace.llava_onevision2 import vllm_time_tag
from vidpipe.plan.encoder_graphs import GraphLimits, assign_to_ranks, budgets_between, pack
from vidpipe.pruning.counts import evs_count, vidcom2_count
from vidpipe.pruning.evs import evs_mask
from vidpipe.pruning.vidcom2 import vidcom2_mask
from vidpipe.recipe.schema import Sampling

try:
    vllm_environment.installed()
    torchvision_on_cpu.install()
except EngineError:
    pytest.skip("vLLM is not installed here", allow_module_level=True)

import torch
from transformers.models.ernie4_5_vl_moe import image_processing_ernie4_5_vl_moe as hf_ernie_image
from transformers.models.ernie4_5_vl_moe import video_processing_ernie4_5_vl_moe as hf_ernie
from transformers.models.minimax_m3_vl import image_processing_minimax_m3_vl as hf_minimax
from transformers.models.qwen2_vl import image_processing_qwen2_vl as hf_qwen2
from transformers.models.qwen3_vl import video_processing_qwen3_vl as hf_qwen3
from transformers.video_utils import VideoMetadata
from vllm.model_executor.models import ernie45_vl as vllm_ernie
from vllm.model_executor.models import llava_onevision2 as vllm_ov2
from vllm.model_executor.models import qwen3_vl as vllm_qwen3
from vllm.model_executor.models.vision import get_load_balance_assignment
from vllm.models.minimax_m3.common.mm_preprocess import MiniMaxM3VideoBackend
from vllm.multimodal import video as vllm_video
from vllm.multimodal.video_prune import evs as vllm_evs
from vllm.multimodal.video_prune import vidcom2 as vllm_vidcom2
from vllm.transformers_utils.processors import minimax_m3 as vllm_minimax
from vllm.v1.worker.encoder_cudagraph import EncoderCudaGraphManager

pytestmark = pytest.mark.upstream

examples = settings(max_examples=2000, suppress_health_check=[HealthCheck.too_slow])

frames = st.integers(1, 400) | st.integers(1, 200_000)
rates = st.sampled_from([0.5, 1.0, 5.0, 10.0, 12.5, 15.0, 24.0, 24000 / 1001, 25.0, 29.97, 30000 / 1001, 50.0, 60.0])
fps = rates | st.floats(0.1, 240)
unknown_fps = st.just(0.0) | fps
targets = st.sampled_from([0.1, 0.5, 1.0, 2.0, 4.0, 30.0, 60.0]) | st.floats(0.01, 60)
caps = st.integers(1, 1000)
sides = st.integers(1, 300) | st.integers(1, 8000)
seconds = st.floats(0, 1e5) | st.integers(0, 10**6).map(lambda n: n / 60)
qs = st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 0.75, 0.9]) | st.floats(0, 0.999)


def loaded(backend: Any, total: int, rate: float, target_fps: float = -1, num_frames: int = -1, **options: int) -> Any:
    source = vllm_video.VideoSourceMetadata(total, rate, total / rate if rate > 0 else 0)
    target = vllm_video.VideoTargetMetadata(num_frames, target_fps, 300)
    return backend.compute_frames_index_to_sample(source, target, **options)


def outcome(rule: Callable[[], Any]) -> Any:
    """The value, or that it was refused: upstream refuses with ValueError."""
    try:
        found = rule()
    except (ValueError, MediaError):
        return "refused"
    return list(found) if isinstance(found, tuple) else found


@examples
@given(frames, unknown_fps, targets, st.integers(1, 100), caps)
def test_qwen3_vl_indices(total: int, rate: float, target: float, low: int, high: int) -> None:
    ours = qwen3_vl.sample_indices(total, rate, target_fps=target, min_frames=low, max_frames=high)
    assert ours == loaded(vllm_video.Qwen3VLVideoBackend, total, rate, target, min_frames=low, max_frames=high)


@examples
@given(frames, unknown_fps, targets, st.integers(1, 100), caps, st.none() | st.integers(1, 300))
def test_qwen3_vl_hf_indices(total: int, rate: float, target: float, low: int, high: int, exact: int | None) -> None:
    theirs = hf_qwen3.Qwen3VLVideoProcessor.sample_frames(
        SimpleNamespace(num_frames=None, fps=2.0, min_frames=low, max_frames=high),
        VideoMetadata(total_num_frames=total, fps=rate or None),
        num_frames=exact,
        fps=None if exact else target,
    )
    ours = qwen3_vl.sample_indices(
        total, rate, target_fps=target, min_frames=low, max_frames=high, num_frames=exact, rule="hf"
    )
    assert ours == theirs.tolist()


@examples
@given(frames, unknown_fps, targets, caps)
def test_llava_onevision2_indices(total: int, rate: float, target: float, cap: int) -> None:
    ours = llava_onevision2.vllm_indices(total, rate, target_fps=target, max_frames=cap)
    assert ours == loaded(vllm_ov2.LlavaOnevision2VideoBackend, total, rate, target, cap)


@examples
@given(frames, st.integers(1, 768))
def test_float32_spreading_is_torchs(total: int, count: int) -> None:
    assert spread_float32(total, count) == torch.linspace(0, total - 1, count).round().long().tolist()


@examples
@given(frames, st.floats(1, 768))
def test_float32_steps_are_torchs(total: int, count: float) -> None:
    count = min(count, total)
    assert steps_float32(total, count) == torch.arange(0, total, total / count).int().tolist()


@examples
@given(frames, unknown_fps, st.none() | targets, st.none() | caps)
def test_uniform_indices(total: int, rate: float, target: float | None, cap: int | None) -> None:
    ours = ernie45_vl_sampling.uniform_indices(total, rate, target_fps=target, max_frames=cap)
    assert ours == loaded(vllm_video.VideoBackend, total, rate, target or -1, cap or -1)


@examples
@given(frames, fps, targets, st.none() | st.integers(16, 180))
def test_ernie_hf_indices(total: int, rate: float, target: float, exact: int | None) -> None:
    processor = SimpleNamespace(num_frames=None, min_frames=16, max_frames=180)
    asked = {"num_frames": exact} if exact else {"fps": target}
    metadata = VideoMetadata(total_num_frames=total, fps=rate)
    theirs = outcome(lambda: hf_ernie.Ernie4_5_VLMoeVideoProcessor.sample_frames(processor, metadata, **asked).tolist())
    ours = outcome(
        lambda: ernie45_vl_sampling.hf_indices(total, rate, target_fps=None if exact else target, num_frames=exact)
    )
    assert ours == theirs


@examples
@given(st.integers(2, 200_000), fps, targets)
def test_qwen2_vl_indices(total: int, rate: float, target: float) -> None:
    theirs = loaded(vllm_video.Qwen2VLVideoBackend, total, rate, target)
    assert qwen2_vl_indices(total, rate, target_fps=target) == theirs


@examples
@given(st.integers(0, 5000), unknown_fps, targets)
def test_minimax_indices(total: int, rate: float, target: float) -> None:
    assert minimax_m3.interval_indices(total, rate, target_fps=target) == loaded(
        MiniMaxM3VideoBackend, total, rate, target
    )


@examples
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=20), fps)
def test_qwen3_vl_times(indices: list[int], rate: float) -> None:
    theirs = vllm_qwen3.Qwen3VLProcessingInfo._calculate_timestamps(SimpleNamespace(), indices, rate, 2)
    assert qwen3_vl.pair_times([index / rate for index in indices]) == theirs


@examples
@given(st.lists(seconds, min_size=1, max_size=20))
def test_llava_onevision2_tags(times_s: list[float]) -> None:
    told = vllm_ov2._pack_timestamps([times_s])[0].tolist()
    theirs = vllm_ov2._expand_video_markers_in_prompt(vllm_ov2._VIDEO_MARKER, [told], timestamp_decimals=1)
    assert "".join(vllm_time_tag(t) + vllm_ov2._IMAGE_MARKER for t in times_s) == theirs


@examples
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=20).map(sorted), fps)
def test_llava_onevision2_prints_what_it_was_trained_with(indices: list[int], rate: float) -> None:
    family = llava_onevision2.LlavaOnevision2()
    for rule in family.rules:
        sampling = family.complete(Sampling.model_validate({"rule": rule}), family.published)
        clock = FrameClock(tuple(indices), rate, indices[-1] + 1)
        metadata = family.engine_metadata(clock, sampling)
        frames = np.zeros((len(indices), 1, 1, 3), np.uint8)
        _, told = vllm_ov2._frame_video_to_pil_and_timestamps((frames, metadata))
        copied = vllm_ov2._pack_timestamps([told])[0].tolist()[: len(indices)]  # an odd last frame is repeated
        assume(max(clock.times_s) < 400_000)  # five days: beyond, float32 has no tenths
        assert [llava_onevision2.time_tag(time_s) for time_s in copied] == family.time_texts(clock.times_s, sampling)


@examples
@given(seconds)
def test_ernie_drawn_times(time_s: float) -> None:
    theirs = hf_ernie.Ernie4_5_VLMoeVideoProcessor._convert_timestamp(SimpleNamespace(), time_s)
    assert ernie45_vl.drawn_time(time_s) == theirs


@examples
@given(st.integers(2, 800), sides, sides, st.booleans(), st.sampled_from([(4096, 25_165_824), (131_072, 786_432)]))
def test_qwen3_vl_video_sizes(count: int, height: int, width: int, cap: bool, bounds: tuple[int, int]) -> None:
    low, high = bounds
    most = high
    if cap:  # as in the processor's `resize`
        most = max(min(768 * 1024, high // count), int(low * 1.05)) * count
    theirs = outcome(
        lambda: hf_qwen3.smart_resize(
            count, height, width, temporal_factor=2, factor=32, min_pixels=low, max_pixels=most
        )
    )
    size = {"shortest_edge": low, "longest_edge": high}
    ours = outcome(
        lambda: qwen3_vl.video_layout(count, height, width, {"size": size, "cap_pixels_per_frame": cap}).size_wh[::-1]
    )
    assert ours == theirs


@examples
@given(sides, sides, st.sampled_from([28, 32]), st.integers(1, 10**6), st.integers(10**4, 10**7))
def test_image_sizes(height: int, width: int, factor: int, low: int, high: int) -> None:
    asked = {"factor": factor, "min_pixels": low, "max_pixels": high}
    ours = outcome(lambda: qwen2_vl_resize("any", height, width, **asked))
    for upstream in (hf_qwen2, hf_ernie_image, hf_minimax):
        assert ours == outcome(lambda upstream=upstream: upstream.smart_resize(height, width, **asked))


@examples
@given(sides, sides, st.integers(1, 10**6), st.integers(10**4, 10**7))
def test_ernie_sizes(height: int, width: int, low: int, high: int) -> None:
    asked = {"factor": 28, "min_pixels": low, "max_pixels": high}
    ours = outcome(lambda: ernie45_vl.vllm_resize(height, width, **asked))
    assert ours == outcome(lambda: vllm_ernie.smart_resize(height, width, **asked))


@examples
@given(sides, sides, st.none() | st.integers(112, 4000), st.integers(10**4, 10**7))
def test_minimax_sizes(height: int, width: int, long_side: int | None, high: int) -> None:
    ours = outcome(
        lambda: minimax_m3.smart_resize(
            height, width, factor=28, min_pixels=3136, max_pixels=high, max_long_side=long_side
        )
    )
    assert ours == outcome(
        lambda: vllm_minimax.smart_resize(
            height, width, factor=28, min_pixels=3136, max_pixels=high, max_long_side_pixel=long_side
        )
    )


@examples
@given(st.integers(1, 5000), st.integers(1, 800), qs)
def test_retained_counts(tokens: int, steps: int, q: float) -> None:
    assert evs_count(tokens, steps, q) == vllm_evs.compute_retained_tokens_count(tokens, steps, q)
    assert vidcom2_count(tokens, steps, q) == vllm_vidcom2.compute_retained_tokens_count(tokens, steps, q)


@settings(examples, max_examples=300)
@given(st.integers(1, 8), st.integers(1, 4), st.integers(1, 4), st.integers(6, 12), qs, st.integers(0, 2**32 - 1))
def test_masks(steps: int, rows: int, columns: int, channels: int, q: float, seed: int) -> None:
    # Two tokens lie equally far from their mean: which of them stays is decided by rounding, theirs and ours.
    assume(steps * rows * columns != 2)
    embeddings = np.random.default_rng(seed).normal(size=(steps * rows * columns, channels))
    tensor, grid = torch.from_numpy(embeddings), (steps, rows * 2, columns * 2)
    for ours, upstream in ((evs_mask, vllm_evs), (vidcom2_mask, vllm_vidcom2)):
        theirs = upstream.compute_retention_mask(tensor, grid, 2, q)
        assert ours(embeddings, steps, q).tolist() == theirs.tolist(), upstream.__name__


@examples
@given(st.integers(1, 5000), st.integers(1, 200_000))
def test_graph_budgets(low: int, high: int) -> None:
    assert budgets_between(low, high) == EncoderCudaGraphManager._generate_budgets(low, high)


@examples
@given(st.lists(st.integers(1, 5000), max_size=30), st.integers(1, 8))
def test_rank_assignment(sizes: list[int], ranks: int) -> None:
    ours = assign_to_ranks(sizes, ranks)
    assert (list(ours.order), list(ours.counts), list(ours.loads)) == get_load_balance_assignment(sizes, ranks)


class _Log:
    """Stands for a model whose encoder only notes what it was asked to run."""

    def __init__(self) -> None:
        self.batches: list[tuple[tuple[int, ...], int | None]] = []

    def encoder_eager_forward(self, batch: list[int], *, path: str) -> None:
        self.batches.append((tuple(batch), None))

    def postprocess_encoder_output(
        self, outputs: Any, items: list[int], tokens: Any, found: dict[int, int], **_: Any
    ) -> None:
        found.update(dict.fromkeys(items, 0))


@examples
@given(
    st.lists(st.integers(1, 1500), max_size=20),
    st.lists(st.integers(1, 1024), min_size=1, max_size=5, unique=True).map(sorted),
    st.integers(1, 8),
)
def test_graph_packing(item_tokens: list[int], budgets: list[int], max_items: int) -> None:
    manager = object.__new__(EncoderCudaGraphManager)
    manager.model, manager.max_batch_size, manager.graph_misses = _Log(), max_items, 0
    manager.token_budgets, manager.path_token_budgets = budgets, {"all": budgets}
    manager._get_item_specs = lambda _: [
        SimpleNamespace(output_tokens=n, get_path_output_tokens=lambda _, n=n: n) for n in item_tokens
    ]
    manager._select_items = lambda _, items: (items, ())

    def replay(items: list[int], budget: int, **_: Any) -> int:
        manager.model.batches.append((tuple(items), budget))
        return 0

    manager._run_budget_graph = replay
    manager._execute_local({})
    ours = [(batch.items, batch.budget) for batch in pack(item_tokens, GraphLimits(tuple(budgets), max_items, 0))]
    assert ours == manager.model.batches
