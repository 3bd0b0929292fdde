"""Read a recipe file: YAML, `--set`, validation; errors name file, line and the nearest key.

The result keeps what the user wrote apart from what defaults filled in, because
"which values did somebody choose" is the first question about an old run.
"""

from __future__ import annotations

import json
import reprlib
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from vidpipe.errors import RecipeError
from vidpipe.recipe.schema import Recipe
from vidpipe.redact import is_secret_name
from vidpipe.wording import did_you_mean

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 200
"""Quotes of what was found; a value can be a whole file put in by mistake."""


@dataclass(frozen=True)
class LoadedRecipe:
    """A valid recipe and where it came from."""

    recipe: Recipe
    given: dict[str, Any]
    """The values that the user wrote (file and `--set`), without defaults."""
    text: str
    """The file as it was, for the run directory."""
    folder: Path
    """Relative paths in the recipe start here."""
    name: str
    """File name without ending; the default run directory is `runs/<name>`."""


def load_recipe(path: Path, assignments: list[str]) -> LoadedRecipe:
    """Read and validate the recipe at `path`, changed by `KEY=VALUE` assignments.

    Raises:
        RecipeError: the file is missing, is not YAML, or does not fit the schema.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise RecipeError(
            f"recipe {path} does not exist. Type the path of a YAML file, for example recipes/demo.yaml."
        ) from None
    except IsADirectoryError:
        raise RecipeError(
            f"recipe {path} is a folder. For a folder of clips give a question: vidpipe run {path} -p TEXT"
        ) from None
    except UnicodeDecodeError as error:
        raise RecipeError(f"recipe {path} is not UTF-8 (byte {error.start}). Save it as UTF-8.") from None
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        _refuse_odd_nodes(node, str(path))
        raw = _with_whole_characters(yaml.safe_load(text))
    except RecipeError:
        raise
    except RecursionError:
        raise RecipeError(f"recipe {path} is nested too deeply to be a recipe.") from None
    except Exception as error:  # PyYAML raises errors of many types for values like `2024-99-99` and `!!int x`
        raise RecipeError(f"recipe {path} is not YAML: {_printable(error)}") from None
    if not isinstance(raw, dict):
        raise RecipeError(f"recipe {path} must be a YAML mapping (`manifest: ...`), found {type(raw).__name__}.")
    return build_recipe(
        raw, assignments, text=text, folder=path.resolve().parent, name=path.stem, source=str(path), node=node
    )


def build_recipe(
    raw: dict[str, Any],
    assignments: list[str],
    *,
    text: str,
    folder: Path,
    name: str,
    source: str,
    node: yaml.Node | None = None,
) -> LoadedRecipe:
    """Validate values that are already read; `source` and `node` serve error messages only."""
    for assignment in assignments:
        assign(raw, assignment)
    _refuse_halves(raw, source)
    try:
        recipe = Recipe.model_validate(raw)
    except ValidationError as error:
        raise RecipeError("\n".join(_explain(problem, source, node) for problem in error.errors())) from None
    _refuse_secrets(recipe, source)
    return LoadedRecipe(recipe, raw, text, folder, name)


def _refuse_secrets(recipe: Recipe, source: str) -> None:
    """A recipe is copied into run directories, and what is handed to an engine stands in its log."""
    for key, value in recipe.engine.args.items():
        if isinstance(value, str) and is_secret_name(key):
            raise RecipeError(
                f"{source}: engine.args.{key}: a secret has no place in a recipe, which is copied into the run's "
                "directory. Remove the key and set it in the environment, for example: export HF_TOKEN=..."
            )


def assign(raw: dict[str, Any], assignment: str) -> None:
    """Carry out one `--set KEY=VALUE` in place; KEY is dotted, VALUE is read as YAML."""
    key, equals, value = assignment.partition("=")
    if not equals or not key.strip():
        raise RecipeError(f"--set {assignment!r} is not KEY=VALUE. Example: --set sampling.fps=1")
    try:
        node = yaml.compose(value, Loader=yaml.SafeLoader)
        _refuse_odd_nodes(node, f"--set {key}")
        parsed = yaml.safe_load(value)
    except RecipeError:
        raise
    except Exception:  # see `load_recipe`
        raise RecipeError(
            f"--set {key}: {value!r} is not a YAML value. Quote text that has ':' or '{{' in it."
        ) from None
    if _has_comment(value, node):
        raise RecipeError(
            f"--set {key}: YAML takes what follows # in {value!r} for a comment. Quote the text, for example: "
            f"--set {shlex.quote(key + '=' + json.dumps(value, ensure_ascii=False))}"
        )
    parsed = _with_whole_characters(parsed)
    *parents, last = key.strip().split(".")
    target = raw
    for depth, parent in enumerate(parents):
        child = target[parent] = {} if target.get(parent) is None else target[parent]
        if not isinstance(child, dict):
            raise RecipeError(f"--set {key}: {'.'.join(parents[: depth + 1])} is not a mapping in this recipe.")
        target = child
    target[last] = parsed


def _with_whole_characters(value: Any) -> Any:
    r"""`value`, in whose texts the two halves of a surrogate pair are one character.

    JSON writes a character beyond U+FFFF as two escapes (`\ud83d\ude00`), which YAML reads as two characters that no
    file can hold.
    """
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    if isinstance(value, dict):
        return {_with_whole_characters(name): _with_whole_characters(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_whole_characters(item) for item in value]
    return value


def _refuse_halves(value: Any, source: str, key: str = "") -> None:
    """Half of a surrogate pair is in no file and no prompt; `engine.args` are the engine's."""
    if isinstance(value, dict) and key != "engine.args":
        for name, item in value.items():
            _refuse_halves(name, source, key)
            _refuse_halves(item, source, f"{key}.{name}".lstrip("."))
    elif isinstance(value, list):
        for item in value:
            _refuse_halves(item, source, key)
    elif isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
        raise RecipeError(f"{source}: {key}: {value[:200]!r} holds half of a surrogate pair. Write the character.")


def _has_comment(value: str, node: yaml.Node | None) -> bool:
    """Whether YAML leaves out a part of `value`, of which it read `node`: nobody writes a comment behind `--set`."""
    return "#" in value[0 if node is None else node.end_mark.index :]


def _explain(problem: Any, source: str, node: yaml.Node | None) -> str:
    path: tuple[str | int, ...] = tuple(problem["loc"])
    line = _line_of(node, path)
    where = f"{source}, line {line}" if line else source
    dotted = ".".join(str(step) for step in path)
    if problem["type"] == "extra_forbidden":
        known = sorted(_fields_at(path[:-1]))
        hint = did_you_mean(str(path[-1]), known, otherwise=f"Known here: {', '.join(known)}.")
        return f"{where}: unknown key {dotted!r}. {hint}"
    if problem["type"] == "missing":
        return f"{where}: key {dotted!r} is missing."
    return f"{where}: {dotted}: {problem['msg']}, found {_SHORT.repr(problem['input'])}."


def _printable(error: Exception) -> str:
    """A message whose odd characters every terminal can show."""
    return str(error).encode(errors="backslashreplace").decode()


def _fields_at(path: tuple[str | int, ...]) -> list[str]:
    """Names of the keys that the schema knows in the section at `path`."""
    section: type[BaseModel] = Recipe
    for step in path:
        field = section.model_fields.get(str(step)) if isinstance(step, str) else None
        if field is None:
            continue  # a list index, or pydantic's name of a union member
        section = next((s for s in _sections_in(field.annotation)), section)
    return list(section.model_fields)


def _sections_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [section for part in get_args(annotation) for section in _sections_in(part)]


def _line_of(node: yaml.Node | None, path: tuple[str | int, ...]) -> int | None:
    """Line of the deepest YAML node on `path`, counted from 1."""
    line = None
    for step in path:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == step:
                    node, line = value, key.start_mark.line + 1
                    break
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line + 1
    return line


def _refuse_odd_nodes(node: yaml.Node | None, where: str, above: tuple[yaml.Node, ...] = ()) -> None:
    """Refuse what YAML itself takes without a word: the last of two equal keys, keys that are lists, endless values."""
    if not isinstance(node, yaml.CollectionNode):
        return
    line = node.start_mark.line + 1
    if node in above:
        raise RecipeError(f"{where}, line {line}: an alias (*) stands inside what it repeats. Write it out.")
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_odd_nodes(item, where, (*above, node))
        return
    seen: set[str] = set()
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise RecipeError(f"{where}, line {line}: a key must be a word, found a list or a mapping.")
        if key.value in seen:
            raise RecipeError(f"{where}, line {key.start_mark.line + 1}: key {key.value!r} stands twice. Keep one.")
        seen.add(key.value)
        _refuse_odd_nodes(value, where, (*above, node))
