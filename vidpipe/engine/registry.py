"""The engines by name; nothing of them is imported before one is asked for."""

from __future__ import annotations

from importlib import import_module

from vidpipe.engine.interface import NO_DEMANDS, Demands, Engine
from vidpipe.errors import CapabilityError
from vidpipe.recipe.schema import EngineSection, Model

ENGINES: dict[str, str] = {
    "vllm": "vidpipe.engine.vllm_engine:VllmEngine",
    "fake": "vidpipe.engine.fake:FakeEngine",
}
"""Engine name -> `module:class`."""


def make_engine(model: Model, settings: EngineSection, checkpoint: str, demands: Demands = NO_DEMANDS) -> Engine:
    """The engine that `settings` name, not started yet.

    Args:
        model: The recipe's model.
        settings: The recipe's engine section.
        checkpoint: Path or hub name of the checkpoint, resolved.
        demands: What else the run asks for.
    """
    if settings.name not in ENGINES:
        raise CapabilityError(f"engine {settings.name!r} is not known. Known: {', '.join(ENGINES)}.")
    module, _, attribute = ENGINES[settings.name].partition(":")
    engine: Engine = getattr(import_module(module), attribute)(model, settings, checkpoint, demands)
    if settings.data_parallel == 1:
        return engine
    from vidpipe.engine.group import EngineGroup

    return EngineGroup(engine, model, settings, checkpoint, demands)
