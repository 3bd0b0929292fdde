"""Whether a checkpoint's files can be read: settings, tokenizer, chat template, weights."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vidpipe.doctor.finding import Finding
from vidpipe.engine.checkpoint import read_checkpoint
from vidpipe.engine.retold import Teller
from vidpipe.errors import CapabilityError, RecipeError
from vidpipe.models.registry import family_of

HEADER_BYTES = 8
"""Length of the header that a safetensors file begins with: uint64, little-endian."""


def checkpoint(path: str, folder: Path, *, weights: bool = True) -> Iterator[Finding]:
    """Look at what a recipe in `folder` calls `path`; `weights`: whether the engine will load any."""
    try:
        found = read_checkpoint(path, folder)
        family = family_of(found.config, path)
    except (RecipeError, CapabilityError) as error:
        yield Finding("checkpoint", "error", str(error), "set model.path to a folder or a name on the model hub")
        return
    yield Finding("checkpoint", "ok", f"{path}: {family.name}")
    try:
        Teller(found.location)
    except CapabilityError as error:
        advice = "take an instruction-tuned checkpoint with tokenizer.json and chat_template.jinja"
        yield Finding("chat template", "error", str(error), advice)
    else:
        yield Finding("chat template", "ok", "tokenizer and template can be read")
    if weights and Path(found.location).is_dir():
        yield _weights(Path(found.location))


def _weights(folder: Path) -> Finding:
    advice = f"copy or download the file again: hf download NAME --local-dir {folder}"
    files = sorted(folder.glob("*.safetensors"))
    if not files and any(folder.glob("*.bin")):
        return Finding("weights", "warning", "*.bin, which are not looked into", "*.safetensors can be checked")
    if not files:
        return Finding("weights", "error", f"no *.safetensors in {folder}", advice)
    missing = _listed(folder) - {file.name for file in files}
    if missing:
        return Finding("weights", "error", f"{folder}: {', '.join(sorted(missing))} are listed but not there", advice)
    for file in files:
        try:
            _read_header(file)
        except (OSError, ValueError) as error:
            return Finding("weights", "error", f"{file}: {error}", advice)
    total = sum(file.stat().st_size for file in files)
    return Finding("weights", "ok", f"{len(files)} files, {total / 2**30:.2f} GiB")


def _listed(folder: Path) -> set[str]:
    """Files that the index names; empty without an index."""
    index = folder / "model.safetensors.index.json"
    return set(json.loads(index.read_text())["weight_map"].values()) if index.exists() else set()


def _read_header(file: Path) -> None:
    """Raises ValueError unless the file is as long as its header says (huggingface/safetensors, format)."""
    size = file.stat().st_size
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(HEADER_BYTES), "little")
        if not 0 < length <= size - HEADER_BYTES:
            raise ValueError(f"{size} bytes, too short for a header of {length}")
        header: dict[str, Any] = json.loads(opened.read(length))
    ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
    expected = HEADER_BYTES + length + max(ends, default=0)
    if expected != size:
        raise ValueError(f"{size} bytes, {expected} by its header")
