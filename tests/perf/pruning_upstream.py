"""`vidpipe run` with vLLM's own pruning methods in place of the repaired ones, but for what crashes at once.

Run: python -m tests.perf.pruning_upstream RECIPE -o RUN_DIR --set 'pruning={method: evs, rate: 0.5}'. For the control
of `tests.perf.pruning_demo`: the outer vision start is hidden from `recompute_mrope_positions`, because with it
no request gets through. On the CPU build only, whose engine is in this process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vidpipe.cli.app import main
from vidpipe.engine import vllm_environment
from vidpipe.engine.vllm_plugin import pruned_qwen3_vl


def use_upstreams_methods() -> None:
    """Let the repair put a class into place that has upstream's methods."""
    vllm_environment.prepare("")
    from vllm.model_executor.models.qwen3_vl import Qwen3VLForConditionalGeneration as Upstream

    from vidpipe.engine.vllm_plugin import pruned_qwen3_vl_model
    from vidpipe.engine.vllm_plugin.model_classes import replace_model_classes

    class OuterStartHidden(pruned_qwen3_vl_model.PrunedQwen3VL):
        get_mrope_input_positions = Upstream.get_mrope_input_positions
        _create_final_video_embeddings = Upstream._create_final_video_embeddings
        _postprocess_video_embeds_evs = Upstream._postprocess_video_embeds_evs
        _postprocess_image_embeds_evs = Upstream._postprocess_image_embeds_evs

        def recompute_mrope_positions(self, input_ids: Sequence[int], *arguments: Any, **named: Any) -> Any:
            start, end, video = (
                getattr(self.config, f"{name}_token_id") for name in ("vision_start", "vision_end", "video")
            )
            followed_by = [*input_ids[1:], end]
            ids = [
                0 if token == start and after not in (video, end) else token
                for token, after in zip(input_ids, followed_by, strict=True)
            ]
            return Upstream.recompute_mrope_positions(self, ids, *arguments, **named)

    architecture = Upstream.__name__
    object.__setattr__(
        pruned_qwen3_vl.REPAIR, "apply", lambda options: replace_model_classes({architecture: OuterStartHidden})
    )


if __name__ == "__main__":
    import sys

    use_upstreams_methods()
    sys.argv.insert(1, "run")
    main()
