"""Pruned Qwen3-VL with right positions: upstream's class replaced by one of ours that descends from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vidpipe.engine.vllm_plugin.repair import Fault, Repair, Situation

ARCHITECTURES = ("Qwen3VLForConditionalGeneration", "Qwen3VLMoeForConditionalGeneration")
"""Classes that are replaced. Others descend from them in vLLM and keep the faults: pruning is refused for those."""

_TESTS = "tests/plugin/test_pruned_positions.py"
_MODEL = "vllm.model_executor.models.qwen3_vl:Qwen3VLForConditionalGeneration"


def _rehearse(*pairs: int, dtype: str = "float32", outer_start: bool = False) -> Any:
    import torch
    from vllm.model_executor.models.qwen3_vl import Qwen3VLForConditionalGeneration

    from vidpipe.engine.vllm_plugin.rehearsal import Rehearsal, half_kept

    clips = [half_kept(number) for number in pairs]
    return Rehearsal(Qwen3VLForConditionalGeneration, clips, getattr(torch, dtype), outer_start=outer_start)


def _outer_start() -> bool:
    return not _rehearse(6, outer_start=True).is_right()


def _rounded_positions() -> bool:
    return not _rehearse(32, dtype="bfloat16").is_right()


def _split_clip() -> bool:
    prompt = _rehearse(6)
    return not prompt.is_right([len(prompt.ids) * 2 // 5])


def _cached_prefix() -> bool:
    prompt = _rehearse(6)
    return not (prompt.is_right(cached=len(prompt.ids) * 2 // 5) and prompt.is_right(cached=len(prompt.ids) - 3))


def _two_clips() -> bool:
    return not _rehearse(6, 4).is_right()


def _options(situation: Situation) -> Mapping[str, Any] | None:
    return None if situation.demands.pruning is None else {}


def _apply(options: Mapping[str, Any]) -> None:
    from vidpipe.engine.vllm_plugin.model_classes import replace_model_classes
    from vidpipe.engine.vllm_plugin.pruned_qwen3_vl_model import REPLACED

    replace_model_classes(REPLACED)


def _active(worker: Any) -> bool:
    from vidpipe.engine.vllm_plugin.pruned_qwen3_vl_model import PrunedPositions

    model = worker.model_runner.get_model()
    return isinstance(model, PrunedPositions) and bool(vars(model)["is_multimodal_pruning_enabled"])


REPAIR = Repair(
    name="pruned_qwen3_vl",
    faults=(
        Fault(
            "outer vision start",
            "`recompute_mrope_positions` takes the prompt's first vision start for a pair's; the one that "
            "transformers >= 5.10 leaves around the whole video makes it crash or shift all positions.",
            f"{_TESTS}::test_outer_vision_start",
            _outer_start,
        ),
        Fault(
            "rounded positions",
            "Positions are concatenated to bfloat16 embeddings, which hold whole numbers to 256 only.",
            f"{_TESTS}::test_positions_above_256_in_bfloat16",
            _rounded_positions,
        ),
        Fault(
            "clip split over prefill chunks",
            "The start of an item is guessed from vision starts before the chunk, but a pruned item has one a pair.",
            f"{_TESTS}::test_every_cut",
            _split_clip,
        ),
        Fault(
            "prefix-cache hit inside or after a clip",
            "What follows a cached clip keeps positions computed as if its kept tokens were whole frames.",
            f"{_TESTS}::test_every_cached_prefix",
            _cached_prefix,
        ),
        Fault(
            "several clips in a prompt",
            "The search for the second item starts before the text between the two.",
            f"{_TESTS}::test_two_clips",
            _two_clips,
        ),
    ),
    relies_on={
        f"{_MODEL}.get_mrope_input_positions": ("b2153cef1148",),
        f"{_MODEL}._get_mrope_input_positions": ("f7c211e4cddd",),
        f"{_MODEL}._iter_mm_grid_hw": ("7bc4b31d1836",),
        f"{_MODEL}._create_final_video_embeddings": ("1765ec7fbec3",),
        f"{_MODEL}._compute_deepstack_embeds": ("38d5f9c7000d",),
        f"{_MODEL}._postprocess_image_embeds_evs": ("15eb5f1cd279",),
        f"{_MODEL}._postprocess_video_embeds_evs": ("d3a9921b8806",),
        f"{_MODEL}.recompute_mrope_positions": ("e23b3a61bcb5",),
        f"{_MODEL}.embed_multimodal": ("b442ab58d908",),
        f"{_MODEL}._process_video_input": ("d087c1a4f5cc",),
        "vllm.model_executor.models.qwen3_vl:Qwen3VLMultiModalProcessor.get_video_repl": ("3fa7d71150dd",),
        "vllm.multimodal.video_prune.evs:compute_retention_mask": ("4800ff547571",),
        "vllm.multimodal.video_prune.vidcom2:compute_retention_mask": ("7f74bd939e0c",),
        "vllm.multimodal.video_prune.vidcom2:_multi_scale_gaussian": ("3a6c7b66a276",),
        "vllm.v1.worker.gpu_model_runner:GPUModelRunner._gather_mm_embeddings": ("73b7e15ff2e0",),
        "vllm.v1.worker.gpu.model_states.mm_pruning:MultiModalPruner.recompute": ("a93792455364",),
        "vllm.v1.worker.gpu.model_states.mm_pruning:MultiModalPruner.strip": ("1d3605c79bf9",),
    },
    options=_options,
    apply=_apply,
    active=_active,
)
