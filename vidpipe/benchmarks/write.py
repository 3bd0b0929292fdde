"""A benchmark as files: the manifest, a recipe that reproduces the published setting, and what was imported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from vidpipe.benchmarks.import_rows import Imported
from vidpipe.benchmarks.importer import Importer
from vidpipe.benchmarks.settings import Setting
from vidpipe.benchmarks.source import Source
from vidpipe.wording import counted


class _Dumper(yaml.SafeDumper):
    """Long texts stand as blocks, as a person would write them."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def write_benchmark(
    folder: Path,
    importer: Importer,
    source: Source,
    imported: Imported,
    media_root: Path,
    subset: str | None = None,
    setting: Setting | None = None,
) -> Path:
    """Write `rows.jsonl` and `recipe.yaml`; the same input gives the same bytes.

    Args:
        folder: Where they go.
        importer: The benchmark's.
        source: The published files.
        imported: Their rows.
        media_root: Where the videos lie.
        subset: Name of the published part that the rows are.
        setting: Published setting to write into the recipe.

    Returns:
        The recipe's path.
    """
    folder.mkdir(parents=True, exist_ok=True)
    setting = setting or Setting()
    lines = (json.dumps({**row, **setting.row}, ensure_ascii=False) + "\n" for row in imported.rows)
    (folder / "rows.jsonl").write_text("".join(lines), encoding="utf-8")
    part = f", part {subset}" if subset else ""
    types = ", ".join(f"{name} {count}" for name, count in imported.question_types.items())
    counts = f" ({types})" if types else ""
    notes = [
        f"{importer.name}{part}: {len(imported.rows)} of {counted(imported.source_rows, 'row')}{counts}.",
        f"Source: {source.path.name}, sha256 {source.sha256}.",
        f"Prompt: {setting.source if setting.prompt else importer.prompt_source}.",
    ]
    if setting.source:
        published = f"; published: {setting.published}" if setting.published else ""
        notes.append(f"Setting: {setting.source}{published}.")
    recipe: dict[str, Any] = {
        "description": "".join(f"{note}\n" for note in notes),
        "manifest": "rows.jsonl",
        "media_root": str(media_root.resolve()),
        "model": {"path": setting.model},
        "sampling": {**importer.sampling, **setting.sampling},
        "overrides": [dict(override) for override in setting.overrides],
        "engine": dict(setting.engine),
        "generation": {"max_tokens": importer.max_tokens, "temperature": 0},
        "system": setting.system,
        "prompt": setting.prompt or importer.prompt,
        "scorer": setting.scorer or importer.profile,
    }
    recipe = {key: value for key, value in recipe.items() if value}
    path = folder / "recipe.yaml"
    text = yaml.dump(recipe, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    path.write_text(
        "# Written by vidpipe import; put your model's path in, and its sampling where none was published.\n" + text,
        encoding="utf-8",
    )
    return path
