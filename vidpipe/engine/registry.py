"""The engines by name; nothing of them is imported before one is asked for."""

from __future__ import annotations

from importlib import import_module

from vidpipe.engine.interface import NO_DEMANDS, Demands, Engine
from vidpipe.errors import CapabilityError
from vidpipe.recipe.schema import EngineSection, Model

ENGINES: dict[str, str] = {
    "vllm": "vidpipe.engine.vllm_engine:VllmEngine",
    "sglang": "vidpipe.engine.sglang_engine:SglangEngine",
    "fake": "vidpipe.engine.fake:FakeEngine",
}
"""Engine name -> `module:class`."""
OWN_PROCESS = frozenset({"sglang"})
"""Engines that kill the process that they run in, and its children, when something fails."""


def make_engine(model: Model, settings: EngineSection, checkpoint: str, demands: Demands = NO_DEMANDS) -> Engine:
    """The engine that `settings` name, not started yet: in this process, or in processes of its own.

    Args:
        model: The recipe's model.
        settings: The recipe's engine section.
        checkpoint: Path or hub name of the checkpoint, resolved.
        demands: What else the run asks for.
    """
    engine = single_engine(model, settings, checkpoint, demands)
    if settings.data_parallel == 1 and settings.name not in OWN_PROCESS:
        return engine
    from vidpipe.engine.group import EngineGroup

    return EngineGroup(engine, model, settings, checkpoint, demands)


def single_engine(model: Model, settings: EngineSection, checkpoint: str, demands: Demands = NO_DEMANDS) -> Engine:
    """One engine of the kind that `settings` name, to run in the process that starts it. See `make_engine`."""
    if settings.name not in ENGINES:
        raise CapabilityError(f"engine {settings.name!r} is not known. Known: {', '.join(ENGINES)}.")
    module, _, attribute = ENGINES[settings.name].partition(":")
    engine: Engine = getattr(import_module(module), attribute)(model, settings, checkpoint, demands)
    return engine
