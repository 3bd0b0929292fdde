"""What a recipe asks for that cannot be had with SGLang, refused before it starts. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from vidpipe.engine.sglang_sampling import NO_SEED, SEEDED
from vidpipe.errors import CapabilityError, RowError
from vidpipe.recipe.resolve import resolve_row
from vidpipe.recipe.schema import Generation, Recipe

NAME = "sglang"
MOSS_VL = "MossVLForConditionalGeneration"


def refuse_impossible_in_sglang(recipe: Recipe, architecture: str) -> None:
    """Refuse what SGLang has not, or would take no notice of. The encoder's graphs and the codec are refused elsewhere.

    Args:
        recipe: The run's.
        architecture: By which SGLang knows the model's class.

    Raises:
        CapabilityError: naming the switch, the reason and the way out.
    """
    if recipe.engine.name != NAME:
        return
    if recipe.pruning is not None:
        raise CapabilityError(
            "pruning: SGLang drops no vision tokens. Remove `pruning` from the recipe, or set engine.name: vllm."
        )
    _refuse_args(recipe, architecture)
    for where, generation in _generations(recipe):
        if generation.seed is not None and generation.temperature > 0 and not recipe.engine.args.get(SEEDED):
            raise CapabilityError(f"{where}: {NO_SEED}")


def _refuse_args(recipe: Recipe, architecture: str) -> None:
    args = recipe.engine.args
    if architecture != MOSS_VL:
        return
    prefill = args.get("prefill_attention_backend", args.get("attention_backend", "flashinfer"))
    if prefill != "flashinfer":
        raise CapabilityError(
            f"engine.args: Moss-VL's frames are hidden from the text before them by flashinfer's prefill only; found "
            f"{prefill!r}. Remove prefill_attention_backend and attention_backend."
        )
    if args.get("chunked_prefill_size", -1) > 0:
        raise CapabilityError(
            f"engine.args.chunked_prefill_size {args['chunked_prefill_size']}: Moss-VL's frames go into the cache in "
            "one piece. Remove the key."
        )


def _generations(recipe: Recipe) -> Iterator[tuple[str, Generation]]:
    """The settings of generation that the recipe itself leads to; rows may bring others, which cost themselves."""
    yield "generation.seed", recipe.generation
    layers = [(f"overrides[{n}].generation", override.generation) for n, override in enumerate(recipe.overrides)]
    layers += [
        (f"retry.rules[{n}].generation.temperature", rule.generation) for n, rule in enumerate(recipe.retry.rules)
    ]
    for where, layer in layers:
        try:
            found = resolve_row(recipe, {}, {}, layer).generation
        except RowError as error:
            raise CapabilityError(f"{where}: {error}") from None
        retried = where.startswith("retry") and found.temperature > 0
        yield where, found.model_copy(update={"seed": found.seed or 0}) if retried else found
