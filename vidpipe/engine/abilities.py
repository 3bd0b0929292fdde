"""What families can do in the engine that is installed: the written table, held against the engine's own classes.

A table that is only written down is wrong after the next release of the engine. Here
the model class that the engine would load is found by its architecture and asked.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from vidpipe.engine import sglang_environment, torchvision_on_cpu, vllm_environment
from vidpipe.errors import EngineError
from vidpipe.models.family import Abilities, Family

MODALITIES = ("image", "video")


@dataclass(frozen=True)
class InstalledAbilities:
    """A family's abilities in the installed engine."""

    abilities: Abilities
    """As the installed engine has them; as written where it could not be asked."""
    engine_version: str | None
    """Name and version of the engine that was asked; None where it is not installed."""
    differences: tuple[str, ...] = ()
    """Where the engine has it otherwise than the family's file says."""


def installed_abilities(family: Family) -> InstalledAbilities:
    """The abilities of `family`, asked of the installed engine. Imports that engine: seconds, the first time."""
    written = family.abilities
    if written.engine == "sglang":
        return _in_sglang(written)
    try:
        version = " ".join(vllm_environment.installed())
    except EngineError:
        return InstalledAbilities(written, None)
    try:
        model = _model_class(written.architecture)
    except Exception as error:  # importing a model runs whatever the engine's modules do
        reason = f"{version} cannot import {written.architecture}: {type(error).__name__}: {error}"
        return InstalledAbilities(written, version, (reason,))
    if model is None:
        return InstalledAbilities(written, version, (f"{version} does not know {written.architecture}",))
    found = replace(
        written,
        pruning=_pruning(model),
        encoder_graphs=_graph_modalities(model),
        encoder_data_parallel=bool(getattr(model, "supports_encoder_tp_data", False)),
    )
    differences = [
        f"{key}: written {getattr(written, key)!r}, installed {getattr(found, key)!r}"
        for key in ("pruning", "encoder_graphs", "encoder_data_parallel")
        if getattr(written, key) != getattr(found, key)
    ]
    return InstalledAbilities(found, version, tuple(differences))


def _in_sglang(written: Abilities) -> InstalledAbilities:
    """Whether the installed SGLang has the model; by its source, for importing all of its models takes long."""
    try:
        version = f"{sglang_environment.DISTRIBUTION} {sglang_environment.installed()}"
    except EngineError:
        return InstalledAbilities(written, None)
    spec = find_spec("sglang")
    folders = spec.submodule_search_locations if spec is not None else None
    sources = [source for folder in folders or () for source in Path(folder, "srt", "models").glob("*.py")]
    if any(f"class {written.architecture}(" in source.read_text(encoding="utf-8") for source in sources):
        return InstalledAbilities(written, version)
    return InstalledAbilities(written, version, (f"{version} does not know {written.architecture}",))


def _model_class(architecture: str) -> Any:
    torchvision_on_cpu.install()
    from vllm.model_executor.models.registry import ModelRegistry

    registered = ModelRegistry.models.get(architecture)
    return None if registered is None else registered.load_model_cls()


def _pruning(model: Any) -> tuple[str, ...]:
    if not getattr(model, "supports_multimodal_pruning", False):
        return ()
    return tuple(getattr(model, "supported_video_pruning_methods", ()))


def _graph_modalities(model: Any) -> tuple[str, ...]:
    """Words that the class can list as modalities of its encoder graphs.

    Read from the source, because the method that lists them needs a loaded model.
    """
    if not getattr(model, "supports_encoder_cudagraph", False):
        return ()
    source = textwrap.dedent(inspect.getsource(model.get_encoder_cudagraph_config))
    listed = {
        constant.value
        for node in ast.walk(ast.parse(source))
        for value in _modalities_in(node)
        for constant in ast.walk(value)
        if isinstance(constant, ast.Constant)
    }
    return tuple(modality for modality in MODALITIES if modality in listed)


def _modalities_in(node: ast.AST) -> list[ast.expr]:
    """The expression of `modalities=...` as an argument or an assignment."""
    if isinstance(node, ast.keyword) and node.arg == "modalities":
        return [node.value]
    if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "modalities" for t in node.targets):
        return [node.value]
    return []
