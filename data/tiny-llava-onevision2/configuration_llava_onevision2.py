"""STAND-IN for LLaVA-OneVision-2's configuration on the model hub: the fields that vLLM reads, nothing else."""

from __future__ import annotations

from typing import Any

from transformers import PreTrainedConfig
from transformers.models.qwen3.configuration_qwen3 import Qwen3Config


class LlavaOnevision2VisionConfig(PreTrainedConfig):
    """The vision tower; every field is given in config.json."""

    model_type = "onevision_encoder"
    base_config_key = "vision_config"


class LlavaOnevision2Config(PreTrainedConfig):
    """Vision tower and Qwen3 text model."""

    model_type = "llava_onevision2"
    sub_configs = {"vision_config": LlavaOnevision2VisionConfig, "text_config": Qwen3Config}  # noqa: RUF012

    def __init__(
        self, vision_config: dict[str, Any] | None = None, text_config: dict[str, Any] | None = None, **fields: Any
    ) -> None:
        self.vision_config = LlavaOnevision2VisionConfig(**(vision_config or {}))
        self.text_config = Qwen3Config(**(text_config or {}))
        super().__init__(**fields)
