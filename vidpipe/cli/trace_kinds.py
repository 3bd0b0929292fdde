"""The kinds that `vidpipe trace` knows: each a pure function of a JSON input, imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from vidpipe.errors import CapabilityError

KINDS: dict[str, str] = {
    "activitynetqa": "vidpipe.benchmarks.trace.question_sets:activitynetqa",
    "charades_aggregate": "vidpipe.benchmarks.trace.question_sets:charades_aggregate",
    "charades_iou": "vidpipe.benchmarks.trace.question_sets:charades_iou",
    "egoschema": "vidpipe.benchmarks.trace.question_sets:egoschema",
    "encoder_cg_budgets": "vidpipe.plan.trace.encoder_graphs:budgets",
    "encoder_cg_manager_init": "vidpipe.plan.trace.encoder_graphs:manager_init",
    "encoder_cg_packing": "vidpipe.plan.trace.encoder_graphs:packing",
    "encoder_dp_assignment": "vidpipe.plan.trace.encoder_graphs:dp_assignment",
    "ernie_mrope": "vidpipe.models.trace.ernie45_vl:mrope",
    "ernie_sampling": "vidpipe.models.trace.ernie45_vl:sampling",
    "ernie_temporal_pairs": "vidpipe.models.trace.ernie45_vl:pairs",
    "ernie_timestamp_text": "vidpipe.models.trace.ernie45_vl:timestamp_text",
    "evs_mrope_for_media": "vidpipe.pruning.trace:mrope_for_media",
    "evs_recompute_mrope": "vidpipe.pruning.trace:recompute_mrope",
    "frame_indices": "vidpipe.benchmarks.trace.frames:indices",
    "generic_loader_sampling": "vidpipe.models.trace.generic:sampling",
    "interval_iou": "vidpipe.benchmarks.trace.statistics:iou",
    "jumpscore": "vidpipe.benchmarks.trace.question_sets:jumpscore",
    "longvideobench": "vidpipe.benchmarks.trace.choices:longvideobench",
    "longvideobench_aggregate": "vidpipe.benchmarks.trace.choices:longvideobench_aggregate",
    "mcq_extract_generic": "vidpipe.benchmarks.trace.choices:generic",
    "minimax_m3_sampling": "vidpipe.models.trace.minimax_m3:sampling",
    "minimax_m3_vision_segments": "vidpipe.models.trace.minimax_m3:segments",
    "mlvu": "vidpipe.benchmarks.trace.choices:mlvu",
    "mlvu_aggregate": "vidpipe.benchmarks.trace.choices:mlvu_aggregate",
    "moss_hf_frame_allocation": "vidpipe.models.trace.moss_vl:frame_allocation",
    "moss_hf_resize": "vidpipe.models.trace.moss_vl:resize",
    "moss_hf_sampling": "vidpipe.models.trace.moss_vl:sampling",
    "moss_vl_layout": "vidpipe.models.trace.moss_vl:layout",
    "mvbench": "vidpipe.benchmarks.trace.choices:mvbench",
    "mvbench_aggregate": "vidpipe.benchmarks.trace.choices:mvbench_aggregate",
    "nextqa_aggregate": "vidpipe.benchmarks.trace.question_sets:nextqa_aggregate",
    "nextqa_mc": "vidpipe.benchmarks.trace.question_sets:nextqa",
    "ov2_codec_timestamp_runs": "vidpipe.models.trace.llava_onevision2:timestamp_runs",
    "ov2_mcq_extract": "vidpipe.benchmarks.trace.choices:ov2",
    "ov2_patch_positions": "vidpipe.models.trace.llava_onevision2:patches",
    "ov2_repo_native_sampling": "vidpipe.models.trace.llava_onevision2:native_sampling",
    "ov2_smart_nframes": "vidpipe.models.trace.llava_onevision2:smart_nframes",
    "ov2_window_cu_seqlens": "vidpipe.models.trace.llava_onevision2:windows",
    "prompts": "vidpipe.plan.trace.prompts:rendered",
    "qwen3vl_evs_positions": "vidpipe.pruning.trace:qwen3vl_positions",
    "qwen3vl_mrope": "vidpipe.models.trace.qwen3_vl:mrope",
    "qwen3vl_prompt_layout": "vidpipe.pruning.trace:qwen3vl_prompt_layout",
    "qwen3vl_sampling": "vidpipe.models.trace.qwen3_vl:sampling",
    "retained_counts": "vidpipe.pruning.trace:retained_counts",
    "retention_mask_evs": "vidpipe.pruning.trace:mask_evs",
    "retention_mask_vidcom2": "vidpipe.pruning.trace:mask_vidcom2",
    "revsi_aggregate": "vidpipe.benchmarks.trace.vsi:revsi_aggregate",
    "smart_resize_ernie": "vidpipe.models.trace.ernie45_vl:resize",
    "smart_resize_minimax_m3": "vidpipe.models.trace.minimax_m3:resize",
    "smart_resize_ov2": "vidpipe.models.trace.llava_onevision2:resize",
    "smart_resize_qwen3vl_image": "vidpipe.models.trace.qwen3_vl:image_resize",
    "smart_resize_qwen3vl_video": "vidpipe.models.trace.qwen3_vl:video_resize",
    "strip_reasoning": "vidpipe.benchmarks.trace.statistics:reasoning",
    "tempcompass": "vidpipe.benchmarks.trace.question_sets:tempcompass",
    "uncertainty": "vidpipe.benchmarks.trace.statistics:uncertainty",
    "videomme_aggregate": "vidpipe.benchmarks.trace.choices:videomme_aggregate",
    "videomme_extract": "vidpipe.benchmarks.trace.choices:videomme",
    "videomme_v2_groups": "vidpipe.benchmarks.trace.question_sets:groups",
    "vsi_aggregate": "vidpipe.benchmarks.trace.vsi:aggregate",
    "vsi_mca": "vidpipe.benchmarks.trace.vsi:choice",
    "vsi_mra": "vidpipe.benchmarks.trace.vsi:mra",
    "vsi_mra_formula": "vidpipe.benchmarks.trace.vsi:formula",
}
"""Kind -> `module:function`; a kind has the name of its vectors' file."""


def get_rule(kind: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The function from a vector's input to its output.

    Raises:
        CapabilityError: there is no such kind.
    """
    if kind not in KINDS:
        raise CapabilityError(f"trace: {kind!r} is not known. Known: {', '.join(KINDS)}.")
    module, _, function = KINDS[kind].partition(":")
    rule: Callable[[dict[str, Any]], dict[str, Any]] = getattr(import_module(module), function)
    return rule
