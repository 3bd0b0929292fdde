"""The environment that SGLang needs, set before it is imported. Values that the user has set win."""

from __future__ import annotations

import os
from importlib import metadata

from vidpipe.engine import torchvision_on_cpu
from vidpipe.errors import CapabilityError, EngineError
from vidpipe.extras import install
from vidpipe.recipe.schema import EngineSection

DISTRIBUTION = "sglang"
TESTED = frozenset({"0.5.23"})
"""SGLang versions that vidpipe was tried with."""
PLUGIN = "vidpipe.engine.sglang_plugin"
"""Package of the processors that SGLang takes instead of its own (`SGLANG_EXTERNAL_MM_PROCESSOR_PACKAGE`)."""
RESERVE_WHOLE_ANSWERS = {
    "SGLANG_INIT_NEW_TOKEN_RATIO": "1.0",
    "SGLANG_MIN_NEW_TOKEN_RATIO_FACTOR": "1.0",
    "SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION": str(2**20),
}
"""Of `max_tokens`, the share that SGLang keeps free for each running request, at first and at least, and up to where.

Left alone it keeps 70 % free at first and 10 % later, and takes a request back ("retracts" it) where that was too
little; a Moss-VL request cannot be computed a second time.
"""


def installed() -> str:
    """Version of the installed SGLang, without importing it.

    Raises:
        EngineError: none is installed.
    """
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        raise EngineError(
            "engine_start",
            f"SGLang is not installed here. Type: {install('sglang')}, in a virtual environment of its own (vLLM pins "
            "another torch).",
        ) from None


def refuse_unknown_version(settings: EngineSection) -> None:
    """Refuse a version that was not tried, unless the recipe says to go on; vidpipe hands it media past its own code.

    Raises:
        CapabilityError: naming what to type.
    """
    version = installed()
    if version.split("+")[0] in TESTED or settings.unknown_version == "warn":
        return
    tested = " and ".join(sorted(TESTED))
    raise CapabilityError(
        f"sglang {version} is installed, and vidpipe was tried with {tested}: what is handed over might not be what "
        f"the model sees. Type: pip install 'sglang=={tested}', or set engine.unknown_version: warn."
    )


def _is_cpu_torch() -> bool:
    try:
        return metadata.version("torch").endswith("+cpu")
    except metadata.PackageNotFoundError:
        return False


def prepare(checkpoint: str) -> None:
    """Set the process's environment for SGLang.

    Args:
        checkpoint: Path or hub name of the checkpoint; with a path, no hub is asked for anything.
    """
    values = {"TOKENIZERS_PARALLELISM": "false", "SGLANG_EXTERNAL_MM_PROCESSOR_PACKAGE": PLUGIN}
    values |= RESERVE_WHOLE_ANSWERS
    if os.path.isdir(checkpoint):  # noqa: PTH112 - a hub name is no path
        values["HF_HUB_OFFLINE"] = "1"
    if _is_cpu_torch():
        torchvision_on_cpu.install()
        torchvision_on_cpu.reach_children()
    for name, value in values.items():
        os.environ.setdefault(name, value)
