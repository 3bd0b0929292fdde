"""Pruned videos reach the graph manager of the V1 runner together.

That runner encodes the videos of a pruned run one by one and without graphs, to bound memory:
its scheduler counts pruned tokens. With captured graphs the largest bounds a batch, so its flag
is hidden while it encodes. It is read there for nothing else.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

_MARK = "_vidpipe_upstream"


def patch() -> None:
    """Wrap `GPUModelRunner._execute_mm_encoder`. Idempotent."""
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner

    upstream = GPUModelRunner._execute_mm_encoder
    if hasattr(upstream, _MARK):
        return

    @wraps(upstream)
    def execute_mm_encoder(self: Any, scheduler_output: Any) -> Any:
        """Upstream's, as if pruning were off where a manager with graphs takes the videos."""
        manager, pruning = self.encoder_cudagraph_manager, self.is_multimodal_pruning_enabled
        self.is_multimodal_pruning_enabled = pruning and (manager is None or not manager.is_captured())
        try:
            return upstream(self, scheduler_output)
        finally:
            self.is_multimodal_pruning_enabled = pruning

    setattr(execute_mm_encoder, _MARK, upstream)
    GPUModelRunner._execute_mm_encoder = execute_mm_encoder
