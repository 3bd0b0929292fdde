"""The model families by name; listing them imports none of them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from vidpipe.errors import CapabilityError
from vidpipe.models.family import Family

FAMILIES: dict[str, str] = {
    "qwen3_vl": "vidpipe.models.qwen3_vl:Qwen3VL",
    "llava_onevision2": "vidpipe.models.llava_onevision2:LlavaOnevision2",
    "ernie45_vl": "vidpipe.models.ernie45_vl:Ernie45VL",
    "minimax_m3": "vidpipe.models.minimax_m3:MiniMaxM3",
    "moss_vl": "vidpipe.models.moss_vl:MossVL",
}
"""Family name -> `module:class`."""


def get_family(name: str) -> Family:
    """The family called `name`.

    Raises:
        CapabilityError: there is none of that name.
    """
    if name not in FAMILIES:
        raise CapabilityError(f"model family {name!r} is not known. Known: {', '.join(FAMILIES)}. Set model.family.")
    module, _, attribute = FAMILIES[name].partition(":")
    family: Family = getattr(import_module(module), attribute)()
    return family


def family_of(config: Mapping[str, Any], path: str) -> Family:
    """The family that a checkpoint's config.json says it is.

    Raises:
        CapabilityError: no family takes its `model_type`.
    """
    model_type = config.get("model_type")
    for name in FAMILIES:
        family = get_family(name)
        if model_type in family.model_types:
            return family
    raise CapabilityError(
        f"checkpoint {path} is of type {model_type!r}, for which no rules are known. Known families: "
        f"{', '.join(FAMILIES)}. If it behaves like one of them, set model.family."
    )
