"""The CPU runner's missing flag: without it the channels behind pruned embeddings reach the merge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vidpipe.engine.vllm_plugin.repair import Fault, Repair, Situation


def _flag_missing() -> bool:
    """By its source: loading a model is the only behaviour that shows it."""
    import inspect

    from vllm.v1.worker.cpu_model_runner import CPUModelRunner

    load = inspect.unwrap(CPUModelRunner.load_model)
    return "is_multimodal_pruning_enabled" not in inspect.getsource(load)


def _options(situation: Situation) -> Mapping[str, Any] | None:
    return {} if situation.cpu_build and situation.demands.pruning is not None else None


def _apply(options: Mapping[str, Any]) -> None:
    from functools import wraps

    from vllm.model_executor.models.interfaces import supports_multimodal_pruning
    from vllm.v1.worker.cpu_model_runner import CPUModelRunner

    upstream = CPUModelRunner.load_model

    @wraps(upstream)
    def load_model(self: Any, *arguments: Any, **named: Any) -> None:
        """Upstream's, then the flag as `GPUModelRunner.load_model` sets it."""
        upstream(self, *arguments, **named)
        multimodal = self.model_config.multimodal_config
        self.is_multimodal_pruning_enabled = (
            multimodal is not None
            and multimodal.is_multimodal_pruning_enabled()
            and supports_multimodal_pruning(self.get_model())
        )

    CPUModelRunner.load_model = load_model


def _active(worker: Any) -> bool:
    return bool(worker.model_runner.is_multimodal_pruning_enabled)


REPAIR = Repair(
    name="cpu_pruning_flag",
    faults=(
        Fault(
            "flag of the CPU runner",
            "`CPUModelRunner.load_model` does not set `is_multimodal_pruning_enabled`, so pruned requests crash.",
            "tests/plugin/test_live.py::test_cpu_flag",
            _flag_missing,
        ),
    ),
    relies_on={
        "vllm.v1.worker.cpu_model_runner:CPUModelRunner.load_model": ("0844a7db32f3",),
        "vllm.v1.worker.gpu_model_runner:GPUModelRunner._gather_mm_embeddings": ("73b7e15ff2e0",),
    },
    options=_options,
    apply=_apply,
    active=_active,
)
