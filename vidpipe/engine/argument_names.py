"""Names of vLLM's own arguments, read from its installed source: importing it takes seconds, this a tenth of one.

SGLang puts its arguments together from many files while it is imported, so that they are left to its start.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from vidpipe.errors import CapabilityError
from vidpipe.wording import did_you_mean

PACKAGE, FILE, CLASS = "vllm", "engine/arg_utils.py", "EngineArgs"


def argument_names() -> frozenset[str] | None:
    """The arguments that the installed vLLM takes; None where that cannot be read.

    It cannot where vLLM is not installed, and where another version has the class elsewhere, or derives it: then names
    are left to the engine.
    """
    spec = find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations if spec is not None else None) or ():
        try:
            tree = ast.parse(Path(folder, FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError, SyntaxError):
            continue
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name == CLASS and _is_plain_dataclass(node):
                return frozenset(
                    field.target.id
                    for field in node.body
                    if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
                )
    return None


def refuse_unknown_arguments(arguments: Iterable[str]) -> None:
    """Refuse names that vLLM would refuse when it starts, with the nearest that it knows.

    Raises:
        CapabilityError: naming the first one.
    """
    arguments = list(arguments)
    known = argument_names() if arguments else None
    for name in arguments:
        if known is not None and name not in known:
            hint = did_you_mean(name, sorted(known), otherwise="Remove the key.")
            raise CapabilityError(f"engine.args.{name}: the installed vLLM has no such argument. {hint}")


def _is_plain_dataclass(node: ast.ClassDef) -> bool:
    decorators = {word.id for part in node.decorator_list for word in ast.walk(part) if isinstance(word, ast.Name)}
    return "dataclass" in decorators and not node.bases
