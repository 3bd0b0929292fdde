"""STAND-IN for Moss-VL's configuration on the model hub: the fields that SGLang reads, nothing else."""

from __future__ import annotations

from typing import Any

from transformers import PreTrainedConfig


class MossVLVisionConfig(PreTrainedConfig):
    """The vision tower; every field is given in config.json."""

    model_type = "moss_vl_vision"
    base_config_key = "vision_config"


class MossVLTextConfig(PreTrainedConfig):
    """The text model; every field is given in config.json."""

    model_type = "moss_vl_text"
    base_config_key = "text_config"


class MossVLConfig(PreTrainedConfig):
    """Vision tower and a text model that attends to it across."""

    model_type = "moss_vl"
    sub_configs = {"vision_config": MossVLVisionConfig, "text_config": MossVLTextConfig}  # noqa: RUF012

    def __init__(
        self, vision_config: dict[str, Any] | None = None, text_config: dict[str, Any] | None = None, **fields: Any
    ) -> None:
        self.vision_config = MossVLVisionConfig(**(vision_config or {}))
        self.text_config = MossVLTextConfig(**(text_config or {}))
        super().__init__(**fields)
