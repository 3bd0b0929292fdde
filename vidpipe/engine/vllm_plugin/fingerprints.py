"""Hashes of upstream functions that a repair replaces or relies on, taken from the installed source files.

From the files, not from live objects: a function that something has patched already would
otherwise look like another version of it.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import textwrap
from functools import lru_cache
from pathlib import Path

DIGITS = 12


def fingerprint(source: str, qualified_name: str) -> str | None:
    """Hash of the source of `Class.method` or `function` in a module's `source`; None if it is not there."""
    node: ast.AST = _parsed(source)
    for name in qualified_name.split("."):
        found = [child for child in getattr(node, "body", []) if getattr(child, "name", None) == name]
        if not found:
            return None
        node = found[-1]
    text = ast.get_source_segment(source, node)
    assert text is not None
    return hashlib.sha256(textwrap.dedent(text).encode()).hexdigest()[:DIGITS]


def installed(function: str) -> str | None:
    """Fingerprint of an installed `module:qualified.name`; None if there is no such thing."""
    module, _, qualified_name = function.partition(":")
    source = _source(module)
    return None if source is None else fingerprint(source, qualified_name)


@lru_cache(maxsize=16)
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


@lru_cache(maxsize=16)
def _source(module: str) -> str | None:
    """Read without importing anything, not even the packages around it."""
    package, *inner = module.split(".")
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        file = Path(folder, *inner).with_suffix(".py")
        if file.exists():
            return file.read_text(encoding="utf-8")
    return None
