"""From command-line arguments to a loaded recipe, for all commands that take one."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from vidpipe.errors import RecipeError
from vidpipe.manifest.folder import VIDEO_SUFFIXES
from vidpipe.recipe.load import LoadedRecipe, build_recipe, load_recipe

if TYPE_CHECKING:
    from vidpipe.job.prospect import Named

DEMO_MODEL = Path(__file__).resolve().parents[2] / "data" / "tiny-qwen3vl"
TOY = (
    "No model is named, so the demo's answers: a toy of 10 million parameters that knows drawn shapes and nothing of "
    "real video. Name yours with --set model.path=FOLDER_OR_HUB_NAME."
)
RECIPE_SUFFIXES = (".yaml", ".yml")


def recipe_from(target: Path, prompt: str | None, assignments: list[str]) -> LoadedRecipe:
    """The recipe that `target` is, or the one that a folder of clips, a clip or a manifest and `-p` stand for.

    Raises:
        RecipeError: there is no such recipe, or no question for the clips.
    """
    if prompt is not None:
        assignments = [*assignments, f"prompt={json.dumps(prompt)}"]  # a JSON text is a YAML text
    if target.suffix in RECIPE_SUFFIXES:
        return load_recipe(target, assignments)
    if not target.exists():
        raise RecipeError(f"{target} does not exist. Type a recipe (.yaml), a folder of clips, a clip or a manifest.")
    if target.is_dir() and prompt is None and not _names(assignments, "prompt"):
        raise RecipeError(f"{target} is a folder of clips; add a question: -p 'What happens?'")
    if prompt is None and target.suffix.lower() in VIDEO_SUFFIXES and not _names(assignments, "prompt"):
        raise RecipeError(f"{target} is a clip; add a question: -p 'What happens?'")
    raw: dict[str, Any] = {"manifest": str(target.resolve())}
    if not _names(assignments, "model.path"):
        if not DEMO_MODEL.is_dir():
            raise RecipeError("no model is named. Add --set model.path=FOLDER_OR_HUB_NAME.")
        typer.echo(TOY, err=True)
        raw |= {"model": {"path": str(DEMO_MODEL)}, "description": TOY}
    return build_recipe(
        raw,
        assignments,
        text=_as_yaml(raw, assignments),
        folder=Path.cwd(),
        name=Path(os.path.abspath(target)).stem,  # noqa: PTH100 - `.` has a name, and a link keeps its own
        source="command line",
    )


def _names(assignments: list[str], key: str) -> bool:
    return any(assignment.startswith(f"{key}=") for assignment in assignments)


def default_run_dir(loaded: LoadedRecipe) -> Path:
    """`runs/<recipe name>`, in the folder that the command is typed in."""
    return Path("runs") / loaded.name


def warn_of_budget(named: Named) -> None:
    """Say on standard error that a reasoning model has too few tokens to come to its answers."""
    from vidpipe.engine.reasoning import budget_warning

    warning = budget_warning(named.checkpoint.location, named.recipe.generation.max_tokens)
    if warning:
        typer.echo(warning, err=True)


def _as_yaml(raw: dict[str, Any], assignments: list[str]) -> str:
    """The recipe file that would have said the same, for the run directory."""
    import yaml

    from vidpipe.recipe.load import assign

    values = copy.deepcopy(raw)
    for assignment in assignments:
        assign(values, assignment)
    return yaml.safe_dump(values, allow_unicode=True, sort_keys=False)
