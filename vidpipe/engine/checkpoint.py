"""The small JSON files of a checkpoint, read from its folder or from the model hub; never its weights."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vidpipe.errors import RecipeError
from vidpipe.models.family import Family

PROCESSOR_FILES = ("video_preprocessor_config.json", "preprocessor_config.json")
FONT_FILE = "Roboto-Regular.ttf"
"""The font in a checkpoint whose model reads times on the frames, where its settings name no other."""


@dataclass(frozen=True)
class Checkpoint:
    """What the rules need to know of a checkpoint before an engine loads it."""

    location: str
    """Folder, or name on the hub."""
    config: Mapping[str, Any]
    """`config.json`."""
    video_processor: Mapping[str, Any]
    """`video_preprocessor_config.json`, or what stands in for it; empty if there is none."""
    image_processor: Mapping[str, Any]
    """`preprocessor_config.json`; empty if there is none."""

    def processor(self, family: Family) -> Mapping[str, Any]:
        """Settings of the processor that the family's frames go through."""
        return self.image_processor if family.frames_are_images else self.video_processor


def read_checkpoint(path: str, folder: Path) -> Checkpoint:
    """The checkpoint that a recipe in `folder` calls `path`.

    Raises:
        RecipeError: there is none.
    """
    local = folder / Path(path).expanduser()
    if local.is_dir():
        return Checkpoint(str(local.resolve()), _required(local, path), *_processors(local))
    if path.startswith((".", "/", "~")):
        raise RecipeError(f"model.path {path}: no such folder. Paths start from the recipe's folder {folder}.")
    return _from_hub(path, folder)


def _required(folder: Path, path: str) -> dict[str, Any]:
    file = folder / "config.json"
    if not file.exists():
        raise RecipeError(f"model.path {path}: there is no config.json in {folder}; it is not a checkpoint.")
    return _read(file)


def _processors(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of the video processor and of the image processor; the one file may serve both.

    `font` among the former is made the font's path, as in transformers, or taken out where there is no such file.
    """
    video, image = (_read(folder / name) if (folder / name).exists() else {} for name in PROCESSOR_FILES)
    video = {**(video or image)}
    font = folder / str(video.pop("font", None) or FONT_FILE)
    return (video | {"font": str(font)} if font.is_file() else video), image


def file_of_hub(name: str, file: str) -> Path:
    """A file of a hub's checkpoint, fetched if it is not on this machine.

    Of one that is not here the hub is asked once before: its client alone tries six times, in 24 seconds, where
    there is no network.

    Raises:
        Exception: network, authorisation, no such file; the hub's client has many.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url, try_to_load_from_cache

    if not isinstance(try_to_load_from_cache(name, file), str):
        get_hf_file_metadata(hf_hub_url(name, file))
    return Path(hf_hub_download(name, file))


def _from_hub(name: str, folder: Path) -> Checkpoint:
    try:
        from huggingface_hub import constants, snapshot_download
    except ImportError:
        raise RecipeError(
            f"model.path {name} is no folder, and without an engine no hub can be asked for it."
        ) from None
    # Before the question: a slow network, or none, would look like a program that hangs.
    print(f"model.path {name} is no folder: asking {constants.ENDPOINT} for its settings", file=sys.stderr)  # noqa: T201
    try:
        config = file_of_hub(name, "config.json")
        snapshot_download(name, allow_patterns=[*PROCESSOR_FILES, "*.ttf"])
    except Exception as error:  # network, authorisation, names: the hub client has many
        raise RecipeError(
            f"model.path {name}: no such folder in {folder}, where paths start, and the hub says "
            f"{type(error).__name__}: {error}\n"
            f"Type where there is a network: hf download {name} (docs/cluster.md), or set model.path to a folder."
        ) from error
    folder = config.parent
    return Checkpoint(name, _read(config), *_processors(folder))


def _read(file: Path) -> dict[str, Any]:
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise RecipeError(f"{file} is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise RecipeError(f"{file} does not hold a JSON object.")
    return values
