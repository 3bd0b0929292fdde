"""A training's state in files that are small enough to carry: weights and moments in bfloat16, in shards."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tests.world.training.optimise import Optimiser

HEADS = "heads."
"""What the names of their parameters begin with."""
SHARDS = 3
"""Files each for weights and moments; 10 million parameters give 40 MB in all, 7 MB at most a file."""


def save(
    folders: Iterable[Path],
    model: Any,
    heads: torch.nn.Module,
    optimiser: Optimiser,
    trained_s: float,
    steps: int,
    family: str,
) -> None:
    """Write `weights-N.safetensors` and `moments-N.safetensors`, each file whole or not at all.

    The heads stand among the moments: they too are for training alone.
    """
    weights = {name: value.detach().bfloat16().cpu().contiguous() for name, value in model.named_parameters()}
    kept = {**optimiser.moments(), **{f"{HEADS}{name}": value for name, value in heads.named_parameters()}}
    moments = {name: value.detach().bfloat16().cpu().contiguous() for name, value in kept.items()}
    about = {"trained_s": str(trained_s), "steps": str(steps), "family": family}
    for folder in folders:
        _write(folder, "weights", weights, about)
        _write(folder, "moments", moments, about)


def _write(folder: Path, kind: str, values: dict[str, Tensor], about: dict[str, str]) -> None:
    from safetensors.torch import save_file

    shards: list[dict[str, Tensor]] = [{} for _ in range(SHARDS)]
    for name in sorted(values, key=lambda name: -values[name].numel()):
        min(shards, key=lambda shard: sum(value.numel() for value in shard.values()))[name] = values[name]
    for number, shard in enumerate(shards):
        path = folder / f"{kind}-{number}.safetensors"
        save_file(shard, path.with_suffix(".new"), metadata=about)
        path.with_suffix(".new").replace(path)


def read(folder: Path, kind: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """All values of a kind and what is said about them; nothing where the folder has none."""
    from safetensors import safe_open

    values: dict[str, Tensor] = {}
    about: dict[str, str] = {}
    for path in sorted(folder.glob(f"{kind}-*.safetensors")):
        with safe_open(path, "pt") as file:
            about = file.metadata()
            values |= {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    return values, about


def progress(folder: Path) -> tuple[float, int]:
    """Seconds trained and steps made by what the folder holds; 0 where it holds nothing."""
    about = read(folder, "weights")[1]
    return float(about.get("trained_s", 0)), int(about.get("steps", 0))


def load(folder: Path, model: Any, heads: torch.nn.Module, optimiser: Optimiser) -> None:
    """Put everything back, as far as the folder has it."""
    weights, about = read(folder, "weights")
    moments, _ = read(folder, "moments")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if weights:
                parameter.copy_(weights[name])
        for name, parameter in heads.named_parameters():
            if moments:
                parameter.copy_(moments[f"{HEADS}{name}"])
    optimiser.remember(moments, int(about.get("steps", 0)))
