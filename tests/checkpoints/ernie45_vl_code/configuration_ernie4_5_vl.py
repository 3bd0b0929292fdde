"""STAND-IN for the file of this name on the model hub: the fields that vLLM reads."""

from __future__ import annotations

from typing import Any

from transformers import PreTrainedConfig


class DFNRopeVisionTransformerConfig(PreTrainedConfig):
    model_type = "DFNRope_vision_transformer"
    base_config_key = "vision_config"

    def __init__(self, **values: Any) -> None:
        published: dict[str, Any] = {
            "depth": 32, "embed_dim": 1280, "hidden_size": 1280, "num_heads": 16, "mlp_ratio": 4, "in_channels": 3,
            "patch_size": 14, "spatial_merge_size": 2, "hidden_act": "quick_gelu",
        }  # fmt: skip
        super().__init__(**{**published, **values})


class Ernie4_5_VLMoEConfig(PreTrainedConfig):  # noqa: N801 - the hub's name
    model_type = "ernie4_5_moe_vl"
    sub_configs = {"vision_config": DFNRopeVisionTransformerConfig}  # noqa: RUF012 - as transformers has it

    def __init__(self, vision_config: Any = None, rope_theta: float = 500_000.0, **values: Any) -> None:
        if not isinstance(vision_config, DFNRopeVisionTransformerConfig):
            vision_config = DFNRopeVisionTransformerConfig(**(vision_config or {}))
        self.vision_config = vision_config
        self.rope_parameters = {"rope_type": "default", "rope_theta": rope_theta}
        published: dict[str, Any] = {
            "hidden_act": "silu", "rms_norm_eps": 1e-5, "use_bias": False, "spatial_conv_size": 2,
            "temporal_conv_size": 2, "use_temporal_conv": True, "moe_layer_interval": 1, "tie_word_embeddings": True,
        }  # fmt: skip
        values.pop("rope_parameters", None)
        super().__init__(**{**published, **values})
