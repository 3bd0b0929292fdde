"""Encoder graphs that fit the plan: with pruning, for LLaVA-OneVision-2 and for ERNIE's videos, safe from overruns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vidpipe.engine.vllm_plugin.graph_run import NAME, options_for
from vidpipe.engine.vllm_plugin.repair import Fault, Repair, Situation

_HERE = "vidpipe.engine.vllm_plugin"
CLASSES = {
    "Qwen3VLForConditionalGeneration": f"{_HERE}.graphed_qwen3_vl",
    "Qwen3VLMoeForConditionalGeneration": f"{_HERE}.graphed_qwen3_vl",
    "LlavaOnevision2ForConditionalGeneration": f"{_HERE}.graphed_llava_onevision2",
    "Ernie4_5_VLMoeForConditionalGeneration": f"{_HERE}.graphed_ernie45_vl",
}
"""Architecture -> the module whose `REPLACED` has our class."""

_TESTS = "tests/plugin/test_graph_faults.py"
_MANAGER = "vllm.v1.worker.encoder_cudagraph:EncoderCudaGraphManager"
_QWEN3 = "vllm.model_executor.models.qwen3_vl:Qwen3VLForConditionalGeneration"
_ERNIE = "vllm.model_executor.models.ernie45_vl:Ernie4_5_VLMoeForConditionalGeneration"
_OV2 = "vllm.model_executor.models.llava_onevision2"


def _options(situation: Situation) -> Mapping[str, Any] | None:
    wanted = situation.demands.graphs
    return None if wanted is None else options_for(wanted.graphs, always=wanted.always)


def _apply(options: Mapping[str, Any]) -> None:
    from importlib import import_module

    from vllm.v1.worker.encoder_cudagraph import EncoderCudaGraphManager

    from vidpipe.engine.vllm_plugin import graph_manager, sequential_videos
    from vidpipe.engine.vllm_plugin.model_classes import replace_model_classes

    replace_model_classes({word: import_module(module).REPLACED[word] for word, module in CLASSES.items()})
    graph_manager.patch(EncoderCudaGraphManager)
    sequential_videos.patch()


def _active(worker: Any) -> bool:
    from vllm.v1.worker.encoder_cudagraph import EncoderCudaGraphManager

    from vidpipe.engine.vllm_plugin.graph_manager import is_patched
    from vidpipe.engine.vllm_plugin.graph_timing import manager_of

    ours = hasattr(worker.model_runner.get_model(), "encoder_items") and is_patched(EncoderCudaGraphManager)
    return ours and (manager_of(worker) is not None or not _can_capture())


def _can_capture() -> bool:
    from vllm.platforms import current_platform

    return bool(current_platform.is_cuda_alike())


def _probe(name: str) -> Any:
    """A probe of `graph_faults`, which imports vLLM."""

    def probe() -> bool:
        from vidpipe.engine.vllm_plugin import graph_faults

        found: bool = getattr(graph_faults, name)()
        return found

    return probe


REPAIR = Repair(
    name=NAME,
    faults=(
        Fault(
            "packer overrun",
            "`_execute_local` fills batches by items and tokens and never looks at attention sequences: a long clip "
            "of low resolution does not fit the captured borders and raises (vllm#43403).",
            f"{_TESTS}::test_packer_overrun",
            _probe("packer_overrun"),
        ),
        Fault(
            "padded capture grid",
            "`prepare_encoder_cudagraph_capture_inputs` rounds rows up twice (a budget of 300 tokens computes 384) and "
            "bakes the whole budget into attention as the longest sequence.",
            f"{_TESTS}::test_padded_capture_grid",
            _probe("padded_capture_grid"),
        ),
        Fault(
            "no graphs with pruning",
            "`get_encoder_cudagraph_config` lists no modality when pruning is on.",
            f"{_TESTS}::test_no_graphs_with_pruning",
            _probe("no_graphs_with_pruning"),
        ),
        Fault(
            "no graphs for LLaVA-OneVision-2",
            "Its class has none of the graph methods.",
            f"{_TESTS}::test_no_graphs_for_llava_onevision2",
            _probe("no_graphs_for_llava_onevision2"),
        ),
        Fault(
            "ERNIE resampled twice",
            "`encoder_eager_forward` resamples and the manager then post-processes, so an image above the largest "
            "budget goes through the resampler twice.",
            f"{_TESTS}::test_ernie_resampled_twice",
            _probe("ernie_resampled_twice"),
        ),
    ),
    relies_on={
        f"{_MANAGER}.__init__": frozenset({"732b9f8f4c43"}),
        f"{_MANAGER}.capture": frozenset({"1de8fe66e738"}),
        f"{_MANAGER}._capture_budget_graph": frozenset({"48e8c60ce40c"}),
        f"{_MANAGER}._select_items": frozenset({"ea288a3e25c0"}),
        f"{_MANAGER}._run_budget_graph": frozenset({"6aafe6a33dd6"}),
        f"{_MANAGER}._execute_local": frozenset({"0eb42c662b03"}),
        f"{_MANAGER}.execute": frozenset({"9aedbf4401fa"}),
        f"{_QWEN3}.get_encoder_cudagraph_config": frozenset({"f2876f646475"}),
        f"{_QWEN3}.prepare_encoder_cudagraph_capture_inputs": frozenset({"8b69138a9d3b"}),
        f"{_QWEN3}.prepare_encoder_cudagraph_replay_buffers": frozenset({"d06a7b2a5c14"}),
        f"{_QWEN3}.encoder_cudagraph_forward": frozenset({"c90f16a57d70"}),
        f"{_QWEN3}.encoder_eager_forward": frozenset({"fd6630d3723a"}),
        f"{_QWEN3}._postprocess_video_embeds_evs": frozenset({"d3a9921b8806"}),
        f"{_ERNIE}.get_encoder_cudagraph_config": frozenset({"206367adf942"}),
        f"{_ERNIE}.encoder_cudagraph_forward": frozenset({"3cf3c4b408c9"}),
        f"{_ERNIE}._vision_forward": frozenset({"fe096dc58797"}),
        f"{_ERNIE}._process_video_input": frozenset({"259019cc4e46"}),
        f"{_OV2}:LlavaOnevision2VisionTower.forward": frozenset({"ad92c179bbd6"}),
        f"{_OV2}:LlavaOnevision2ForConditionalGeneration._process_video_input": frozenset({"1ccc5b46165d"}),
        "vllm.v1.worker.gpu_model_runner:GPUModelRunner._execute_mm_encoder": frozenset({"dc714ebada61"}),
        "vllm.v1.worker.gpu.mm.encoder_runner:EncoderRunner.execute_mm_encoder": frozenset({"22976527bf60"}),
    },
    options=_options,
    apply=_apply,
    active=_active,
)
