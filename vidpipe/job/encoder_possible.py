"""Whether a run can have encoder graphs at all, and why not."""

from __future__ import annotations

from collections.abc import Sequence

from vidpipe.engine import vllm_environment
from vidpipe.engine.vllm_plugin.encoder_graphs import CLASSES
from vidpipe.errors import CapabilityError, EngineError
from vidpipe.recipe.schema import Recipe

MEASURED = frozenset({"Qwen3VLForConditionalGeneration", "LlavaOnevision2ForConditionalGeneration"})
"""Architectures whose graphs have been measured on a GPU (docs/performance.md): runs may have them without asking."""


def why_no_graphs(recipe: Recipe, architectures: Sequence[str]) -> str | None:
    """Why the run has no encoder graphs, on whatever machine; None if it may have some.

    Args:
        recipe: The run's recipe.
        architectures: The words in the checkpoint's `architectures`.
    """
    if recipe.engine.encoder_graphs == "off":
        return "engine.encoder_graphs is off"
    if recipe.engine.name != "vllm":
        return f"the engine {recipe.engine.name} has none"
    if recipe.engine.args.get("enforce_eager"):
        return "engine.args.enforce_eager turns them off"
    others = [word for word in architectures if word not in CLASSES]
    if others or not architectures:
        return f"vidpipe has none for {', '.join(others) or 'a checkpoint without architectures'}"
    if recipe.pruning is not None and recipe.engine.args.get("mm_encoder_tp_mode") == "data":
        return "with pruning and a data-parallel encoder they have never run"
    return None


def why_no_graphs_here(recipe: Recipe, architectures: Sequence[str]) -> str | None:
    """The same on this machine."""
    reason = why_no_graphs(recipe, architectures)
    if reason is not None:
        return reason
    if _is_cpu_build():
        return "vLLM's CPU build, which is installed here, has none"
    if recipe.engine.encoder_graphs == "auto" and not MEASURED.issuperset(architectures):
        return f"auto takes none for {', '.join(architectures)}, which was never measured on a GPU; `on` takes them"
    return None


def refuse_graphs(recipe: Recipe, reason: str | None) -> None:
    """Refuse `engine.encoder_graphs: on` where there can be none.

    Raises:
        CapabilityError: with the reason.
    """
    if recipe.engine.encoder_graphs == "on" and reason is not None:
        raise CapabilityError(
            f"engine.encoder_graphs: on cannot be had: {reason}. Leave it at auto. Architectures with encoder graphs: "
            f"{', '.join(CLASSES)}."
        )


def _is_cpu_build() -> bool:
    try:
        return vllm_environment.is_cpu_build()
    except EngineError:
        return False  # no engine here: planned for another machine
