"""What a run tells the plugin: one environment variable, which every process that vLLM starts inherits."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

VARIABLE = "VIDPIPE_VLLM_PLUGIN"

UnknownVersion = Literal["warn", "refuse"]


@dataclass(frozen=True)
class PluginSettings:
    """Which repairs a run wants, and how."""

    repairs: Mapping[str, Mapping[str, Any]]
    """Name of the repair -> its options, as JSON holds them."""
    unknown_version: UnknownVersion = "refuse"
    """See `EngineSection.unknown_version`."""
    worker_extension: str = ""
    """The user's own `worker_extension_cls`, which ours must not replace."""


def write(settings: PluginSettings | None) -> None:
    """Put the settings into this process's environment; None takes those of an earlier run away."""
    if settings is None:
        os.environ.pop(VARIABLE, None)
    else:
        os.environ[VARIABLE] = json.dumps(asdict(settings))


def read() -> PluginSettings | None:
    """The settings of the run that started this process; None if no run of vidpipe did."""
    text = os.environ.get(VARIABLE)
    return None if text is None else PluginSettings(**json.loads(text))
