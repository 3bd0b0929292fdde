"""A run that is recorded, opened again: its rows as they were asked, and the files that they were asked about."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from vidpipe.errors import VidpipeError
from vidpipe.job.prospect import Named, read_named
from vidpipe.job.sharding import row_sha
from vidpipe.manifest.row import BadRow, Row
from vidpipe.manifest.scan import Manifest
from vidpipe.plan.clips import Clip, make_plan
from vidpipe.recipe.load import LoadedRecipe
from vidpipe.recipe.schema import Recipe
from vidpipe.wording import counted


@dataclass(frozen=True)
class Past:
    """What a run was made of, as far as it is still there."""

    named: Named | None
    clips: tuple[Clip, ...]
    """Of the wanted rows that read as they did."""
    notes: tuple[str, ...]
    """What is not there any more, for people."""


def reopen(run: Mapping[str, Any], wanted: Collection[str], sha: Mapping[str, str]) -> Past:
    """Read recipe, checkpoint settings and manifest of a run again.

    Args:
        run: What its `run.json` says.
        wanted: Ids of rows.
        sha: Hash of each row's content when the run was planned.
    """
    if "folder" not in run:
        return Past(None, (), ("The run was made by an older vidpipe, which did not note where its paths start.",))
    try:
        recipe = Recipe.model_validate(run["given"])
        named = read_named(LoadedRecipe(recipe, run["given"], "", Path(run["folder"]), ""))
        rows: list[Row | BadRow] = [row for row in named.rows(Manifest(), begun=True) if row.id in wanted]
    except (VidpipeError, ValidationError) as error:
        return Past(None, (), (f"Prompts and frames cannot be made again: {error}",))
    same = [row for row in rows if row_sha(row) == sha.get(row.id)]
    plan = make_plan(same, named.recipe, named.family, named.checkpoint.processor(named.family))
    notes = []
    if lost := len(wanted) - len(same):
        notes.append(f"{counted(lost, 'row')} of the run cannot be found in the manifest any more, or changed there.")
    return Past(named, plan.clips, tuple(notes))
