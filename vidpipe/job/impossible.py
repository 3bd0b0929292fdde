"""Switches that cannot work, or would do nothing, refused before an engine starts."""

from __future__ import annotations

from collections.abc import Sequence

from vidpipe.engine.argument_names import refuse_unknown_arguments
from vidpipe.engine.vllm_plugin.pruned_qwen3_vl import ARCHITECTURES
from vidpipe.errors import CapabilityError, RowError
from vidpipe.job.encoder_possible import refuse_graphs, why_no_graphs
from vidpipe.job.sglang_possible import refuse_impossible_in_sglang
from vidpipe.manifest.row import BadRow, Row
from vidpipe.models.family import Family
from vidpipe.models.registry import FAMILIES, get_family
from vidpipe.plan.clips import refuse_impossible_media
from vidpipe.recipe.schema import Recipe
from vidpipe.wording import counted

NO_MODEL = "fake"
"""The engine that loads nothing, so that no model can be the wrong one for it."""


def refuse_impossible(recipe: Recipe, family: Family, architectures: Sequence[str]) -> None:
    """Refuse switches that cannot be made good on, instead of ignoring them.

    Args:
        recipe: The run's recipe.
        family: The family of its model.
        architectures: The words in the checkpoint's `architectures`; the engine loads the class that they name.

    Raises:
        CapabilityError: naming the switch, the reason and the way out.
    """
    able = _engines_of(family)
    if recipe.engine.name not in (*able, NO_MODEL):
        others = [name for name in FAMILIES if recipe.engine.name in _engines_of(get_family(name))]
        raise CapabilityError(
            f"engine.name: {family.name} runs in {' and '.join(able)}, not in {recipe.engine.name}. Families for "
            f"{recipe.engine.name}: {', '.join(others)}."
        )
    if recipe.engine.name == "vllm":
        refuse_unknown_arguments(recipe.engine.args)
    refuse_impossible_in_sglang(recipe, family.abilities.architecture)
    _refuse_pruning(recipe, family, architectures)
    refuse_graphs(recipe, why_no_graphs(recipe, architectures))
    _refuse_encoder_switches(recipe, family)
    if family.abilities.needs_remote_code and not recipe.model.trust_remote_code and recipe.engine.name != NO_MODEL:
        raise CapabilityError(
            f"model.trust_remote_code: {family.name} reads videos with the checkpoint's own Python code. Read it, "
            "then set model.trust_remote_code: true."
        )


def refuse_missing_pruning(method: str, family: Family) -> None:
    """Refuse a pruning method that the family's model class does not have.

    Raises:
        CapabilityError: naming the families that have it.
    """
    methods = family.abilities.pruning
    if method not in methods:
        has = f"It has {', '.join(methods)}." if methods else "Its engine would ignore the switch without a word."
        raise CapabilityError(
            f"pruning.method: {family.name} has no {method}. {has} Families with it: "
            f"{', '.join(_families_with('pruning', method))}. To spend fewer tokens here, lower sampling.max_pixels or "
            "sampling.max_frames."
        )


class ImpossibleRows:
    """Finds a manifest of which every row that could run needs media that the family does not take.

    Where only some do, they cost themselves.

    Args:
        recipe: The run's.
        family: The model's.
    """

    def __init__(self, recipe: Recipe, family: Family) -> None:
        self._recipe, self._family = recipe, family
        self._example: RowError | None = None
        self._count = 0
        self.one_can = False
        """Whether a row was seen that can run."""

    def see(self, row: Row | BadRow) -> None:
        """To be called with each row until `one_can`."""
        if isinstance(row, BadRow):
            return
        try:
            refuse_impossible_media(row, self._family, self._recipe, self._recipe.sampling)
        except RowError as error:
            self._example, self._count = self._example or error, self._count + 1
        else:
            self.one_can = True

    def refuse(self) -> None:
        """To be called after the last row.

        Raises:
            CapabilityError: naming what is missing, and families that have it.
        """
        if self.one_can or self._example is None:
            return
        able = [name for name in FAMILIES if (has := get_family(name).abilities).images or has.several_videos]
        raise CapabilityError(
            f"manifest: none of {counted(self._count, 'row')} can run. {self._example} Families with images or "
            f"several videos a row: {', '.join(able)}."
        )


def with_engine(recipe: Recipe, family: Family) -> Recipe:
    """`recipe` with the engine that the family runs in, where the recipe names none."""
    if "name" in recipe.engine.model_fields_set:
        return recipe
    engine = recipe.engine.model_copy(update={"name": family.abilities.engine})
    return recipe.model_copy(update={"engine": engine})


def with_engine_args(recipe: Recipe, family: Family) -> Recipe:
    """`recipe` with the arguments that the family needs of its engine, so that rows record them.

    Raises:
        CapabilityError: the recipe says otherwise.
    """
    needed = family.abilities.engine_args
    if recipe.engine.name != family.abilities.engine or not needed:
        return recipe
    for key, value in needed.items():
        if recipe.engine.args.get(key, value) != value:
            raise CapabilityError(
                f"engine.args.{key}: {family.name} needs {value!r}, without which the model is not shown the frames' "
                f"times; found {recipe.engine.args[key]!r}. Remove the key."
            )
    engine = recipe.engine.model_copy(update={"args": {**recipe.engine.args, **needed}})
    return recipe.model_copy(update={"engine": engine})


def _refuse_pruning(recipe: Recipe, family: Family, architectures: Sequence[str]) -> None:
    if recipe.pruning is None:
        return
    refuse_missing_pruning(recipe.pruning.method, family)
    others = [word for word in architectures if word not in ARCHITECTURES]
    if recipe.engine.name != NO_MODEL and others:
        raise CapabilityError(
            f"pruning: the checkpoint's architecture is {', '.join(others)}, whose pruned requests carry wrong "
            f"positions in vLLM. vidpipe repairs {', '.join(ARCHITECTURES)} only. Remove `pruning` from the recipe."
        )


def _refuse_encoder_switches(recipe: Recipe, family: Family) -> None:
    abilities = family.abilities
    if recipe.engine.args.get("mm_encoder_tp_mode") == "data" and not abilities.encoder_data_parallel:
        raise CapabilityError(
            f"engine.args.mm_encoder_tp_mode: {family.name} has no data-parallel encoder; vLLM would fall back to "
            "dividing its weights. Remove the key. Families with it: "
            f"{', '.join(name for name in FAMILIES if get_family(name).abilities.encoder_data_parallel)}."
        )


def _engines_of(family: Family) -> tuple[str, ...]:
    return (family.abilities.engine, *family.abilities.other_engines)


def _families_with(ability: str, word: str) -> list[str]:
    return [name for name in FAMILIES if word in getattr(get_family(name).abilities, ability)]
