"""A benchmark as files: the manifest, a recipe that reproduces the published setting, and what was imported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from vidpipe.benchmarks.importer import Imported, Importer
from vidpipe.benchmarks.source import Source

MODEL = "Qwen/Qwen3-VL-8B-Instruct"
"""Placeholder; a benchmark does not say which model is asked."""


class _Dumper(yaml.SafeDumper):
    """Long texts stand as blocks, as a person would write them."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def write_benchmark(
    folder: Path, importer: Importer, source: Source, imported: Imported, media_root: Path, subset: str | None
) -> Path:
    """Write `rows.jsonl` and `recipe.yaml`; the same input gives the same bytes.

    Returns:
        The recipe's path.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in imported.rows)
    (folder / "rows.jsonl").write_text("".join(lines), encoding="utf-8")
    part = f", part {subset}" if subset else ""
    counts = ", ".join(f"{name} {count}" for name, count in imported.question_types.items())
    recipe: dict[str, Any] = {
        "description": f"{importer.name}{part}: {len(imported.rows)} of {imported.source_rows} rows ({counts}).\n"
        f"Source: {source.path.name}, sha256 {source.sha256}.\n"
        f"Prompt: {importer.prompt_source}.\n"
        f"Scorer: {importer.profile}.\n",
        "manifest": "rows.jsonl",
        "media_root": str(media_root.resolve()),
        "model": {"path": MODEL},
        "generation": {"max_tokens": importer.max_tokens, "temperature": 0},
        "prompt": importer.prompt,
    }
    path = folder / "recipe.yaml"
    text = yaml.dump(recipe, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    path.write_text(
        "# Written by vidpipe import; put your model's path and its sampling in.\n" + text, encoding="utf-8"
    )
    return path
