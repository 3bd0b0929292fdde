"""Everything about a run that is known before an engine starts: recipe, checkpoint, family, manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from vidpipe.benchmarks.registry import get_profile
from vidpipe.engine.checkpoint import Checkpoint, read_checkpoint
from vidpipe.engine.interface import Demands
from vidpipe.errors import RecipeError
from vidpipe.job.again import refuse_useless_rules
from vidpipe.job.codec import for_codec
from vidpipe.job.impossible import ImpossibleRows, refuse_impossible, with_engine, with_engine_args
from vidpipe.job.prepare import ClipReader
from vidpipe.manifest.row import BadRow, Row
from vidpipe.manifest.scan import Manifest, scan_rows
from vidpipe.models.family import Family
from vidpipe.models.registry import family_of, get_family
from vidpipe.plan.clips import Plan, make_plan
from vidpipe.plan.prompts import PromptTemplate
from vidpipe.recipe.load import LoadedRecipe
from vidpipe.recipe.resolve import reach, refuse_unknown_columns, when_names
from vidpipe.recipe.schema import Recipe


@dataclass(frozen=True)
class Named:
    """A recipe with what it names but the rows, read and found good."""

    loaded: LoadedRecipe
    checkpoint: Checkpoint
    family: Family
    manifest_path: Path
    reader: ClipReader
    template: PromptTemplate

    @property
    def recipe(self) -> Recipe:
        """The recipe itself."""
        return self.loaded.recipe

    def rows(self, manifest: Manifest, *, begun: bool = False) -> Iterator[Row | BadRow]:
        """The manifest's rows one by one; `manifest` gets everything else.

        Args:
            manifest: See above.
            begun: Whether a run with this recipe has been begun; it goes on, whatever its `overrides` ask for.

        Raises:
            RecipeError: after the last row; the template or `overrides` ask for a column that none has.
            CapabilityError: after the last row; the family can take none of them.
        """
        has_prompt = (self.recipe.prompt or self.recipe.template) is not None
        impossible, asked_by_template = ImpossibleRows(self.recipe, self.family), False
        unseen = set[str]() if begun else when_names(self.recipe)
        for row in scan_rows(self.manifest_path, manifest, recipe_has_prompt=has_prompt):
            if not impossible.one_can:
                impossible.see(row)
            if not asked_by_template:
                asked_by_template = isinstance(row, Row) and row.text is None and row.messages is None
            if unseen:
                unseen = {name for name in unseen if reach(row.values, name) is None}
            yield row
        if manifest.refused:
            return
        if asked_by_template:
            self.template.refuse_unknown_names(manifest.columns)
        if manifest.count:
            refuse_unknown_columns(self.recipe, unseen, manifest.columns)
        impossible.refuse()


@dataclass(frozen=True)
class Prospect(Named):
    """The same with all rows."""

    manifest: Manifest

    @property
    def demands(self) -> Demands:
        """What the engine must be told beside the recipe's own sections for it."""
        architectures = tuple(self.checkpoint.config.get("architectures") or ())
        most = self.most_media()
        return Demands(self.recipe.pruning, architectures, most["video"], most["image"])

    def plan(self, rows: Iterable[Row | BadRow]) -> Plan:
        """The plan for some of the manifest's rows."""
        return make_plan(rows, self.recipe, self.family, self.checkpoint.processor(self.family))

    def most_media(self) -> dict[str, int]:
        """The most media by modality of one row that can run; room for a video is always kept."""
        most = {"video": 1, "image": 0}
        abilities = self.family.abilities
        for row in self.manifest.rows:
            if isinstance(row, BadRow) or len(row.media) == 1 == most[row.media[0].modality]:
                continue
            counts: Counter[str] = Counter(medium.modality for medium in row.media)
            if (counts["image"] and abilities.images is None) or (counts["video"] > 1 and not abilities.several_videos):
                continue
            most = {modality: max(count, counts[modality]) for modality, count in most.items()}
        return most


def look_ahead(loaded: LoadedRecipe, *, begun: bool = False) -> Prospect:
    """Read everything that a run needs but media and weights.

    A manifest with faults is not refused here: `Manifest.raise_if_refused` does that,
    and `vidpipe check` lists them.

    Raises:
        RecipeError, CapabilityError: see `read_named` and `Named.rows`.
    """
    named, manifest = read_named(loaded), Manifest()
    manifest.rows.extend(named.rows(manifest, begun=begun))
    return Prospect(**vars(named), manifest=manifest)


def read_named(loaded: LoadedRecipe) -> Named:
    """Read what a recipe names, but not the rows of its manifest.

    Raises:
        RecipeError: a path in the recipe leads nowhere, or a template is none.
        CapabilityError: a combination of switches that cannot work.
    """
    recipe, folder = loaded.recipe, loaded.folder
    template = PromptTemplate(recipe.prompt, recipe.template)
    if recipe.scorer is not None:
        get_profile(recipe.scorer)  # a wrong name is to be found before the GPU hours
    manifest_path = folder / Path(recipe.manifest).expanduser()
    if recipe.media_root is None:
        # Nobody named a root, so there is none to stay in; relative paths start beside the manifest.
        root, allow_outside = manifest_path if manifest_path.is_dir() else manifest_path.parent, True
    else:
        root, allow_outside = folder / Path(recipe.media_root).expanduser(), recipe.media.allow_outside_root
        if not root.is_dir():
            raise RecipeError(
                f"media_root {recipe.media_root}: no such folder. Paths start from {folder}. "
                "Name one that exists in the recipe, or type --set media_root=FOLDER."
            )
    checkpoint = read_checkpoint(recipe.model.path, folder)  # last, for a hub may be asked
    path = recipe.model.path
    family = get_family(recipe.model.family) if recipe.model.family else family_of(checkpoint.config, path)
    recipe = with_engine(recipe, family)
    refuse_impossible(recipe, family, checkpoint.config.get("architectures") or ())
    recipe = for_codec(with_engine_args(recipe, family))
    family.complete(recipe.sampling, checkpoint.processor(family))
    refuse_useless_rules(recipe, family, checkpoint.processor(family))
    reader = ClipReader(recipe, family, checkpoint.processor(family), root, allow_outside, checkpoint.image_processor)
    return Named(replace(loaded, recipe=recipe), checkpoint, family, manifest_path, reader, template)
