"""ERNIE-4.5-VL on the CPU build: its rotary embedding is called with an argument that it does not take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vidpipe.engine.ernie45_vl_frames import ARCHITECTURE
from vidpipe.engine.vllm_plugin.repair import Fault, Repair, Situation

_ROTARY = "vllm.model_executor.layers.rotary_embedding"


def _offsets_not_taken() -> bool:
    """Turn one token by no angle, through the entry that the CPU build uses."""
    import torch
    from vllm.model_executor.layers.rotary_embedding.ernie45_vl_rope import Ernie4_5_VLRotaryEmbedding

    class Recorder:
        """As much of the layer as the call needs before it reaches `forward_native`."""

        def forward_native(self, *arguments: Any, **named: Any) -> Any:
            """Upstream's own signature decides."""
            import inspect

            inspect.signature(Ernie4_5_VLRotaryEmbedding.forward_native).bind(self, *arguments, **named)

    token = torch.zeros(1, 4)
    try:
        Ernie4_5_VLRotaryEmbedding.forward_cpu(Recorder(), torch.zeros(3, 1, dtype=torch.long), token, token)
    except TypeError:
        return True
    return False


def _options(situation: Situation) -> Mapping[str, Any] | None:
    return {} if situation.cpu_build and ARCHITECTURE in situation.demands.architectures else None


def _apply(options: Mapping[str, Any]) -> None:
    from vllm.model_executor.layers.rotary_embedding.ernie45_vl_rope import Ernie4_5_VLRotaryEmbedding

    def forward_cpu(self: Any, positions: Any, query: Any, key: Any = None) -> Any:
        """As the class itself does for CUDA and XPU. No caller of it ever has offsets."""
        return self.forward_native(positions, query, key)

    Ernie4_5_VLRotaryEmbedding.forward_cpu = forward_cpu


def _active(worker: Any) -> bool:
    layers = worker.model_runner.get_model().language_model.model.layers
    return bool(type(layers[0].self_attn.rotary_emb).forward_cpu.__module__ == __name__)


REPAIR = Repair(
    name="ernie_cpu_rotary",
    faults=(
        Fault(
            "offsets on the CPU",
            "`MRotaryEmbedding.forward_cpu` hands `offsets` to `Ernie4_5_VLRotaryEmbedding.forward_native`, which "
            "takes none, so the first forward pass raises TypeError; CUDA and XPU have entries of their own.",
            "tests/engine/test_ernie45_vl.py::test_it_answers_a_real_file",
            _offsets_not_taken,
        ),
    ),
    relies_on={
        f"{_ROTARY}.ernie45_vl_rope:Ernie4_5_VLRotaryEmbedding.forward_native": ("84c0d04d96a7",),
        f"{_ROTARY}.ernie45_vl_rope:Ernie4_5_VLRotaryEmbedding.forward_cuda": ("e030e1e528e4",),
        f"{_ROTARY}.mrope:MRotaryEmbedding.forward_cpu": ("9625b01c8e0c",),
    },
    options=_options,
    apply=_apply,
    active=_active,
)
