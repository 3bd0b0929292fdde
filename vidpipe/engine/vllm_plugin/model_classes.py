"""Our model classes in place of vLLM's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def replace_model_classes(replacements: Mapping[str, Any]) -> None:
    """Let checkpoints of these architectures be loaded by these classes, in this process.

    Classes, not their names: vLLM would import a name in a child process to look at the class,
    and remember what it saw for as long as our file stays the same, whatever vLLM is installed.
    """
    from vllm import ModelRegistry
    from vllm.model_executor.model_loader import utils

    for architecture, replacement in replacements.items():
        ModelRegistry.register_model(architecture, replacement)
    utils._MODEL_ARCH_BY_HASH.clear()  # classes by configuration: what an engine before this one found
