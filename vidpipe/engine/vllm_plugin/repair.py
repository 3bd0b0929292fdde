"""What a repair is. Its module imports nothing of vLLM or torch by itself: the list of repairs is read everywhere."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from vidpipe.engine.interface import Demands

TESTED = frozenset({"0.32.0", "0.33.0"})
"""vLLM versions that vidpipe was tried with."""


@dataclass(frozen=True)
class Situation:
    """What decides whether a run needs a repair."""

    demands: Demands
    cpu_build: bool
    """Whether the installed vLLM is the CPU build."""


@dataclass(frozen=True)
class Fault:
    """One fault of upstream, and how the installed version shows it."""

    name: str
    what: str
    """One sentence: where it sits and what comes of it."""
    shown_by: str
    """The test that fails without the repair, `file::name`."""
    probe: Callable[[], bool]
    """Whether the installed vLLM has the fault: by its behaviour, on the CPU, in a few milliseconds."""


@dataclass(frozen=True)
class Repair:
    """A change to vLLM for the length of a run."""

    name: str
    faults: tuple[Fault, ...]
    relies_on: Mapping[str, Collection[str]]
    """Upstream functions that it replaces, calls or is called by: `module:qualified.name` -> known fingerprints."""
    options: Callable[[Situation], Mapping[str, Any] | None]
    """What the repair must be told (JSON); None if the run does not need it."""
    apply: Callable[[Mapping[str, Any]], None]
    """Make the change in this process. Called once a process."""
    active: Callable[[Any], bool]
    """Whether the change holds for a vLLM worker, whose model is loaded; asked in the worker's process."""
    tested: frozenset[str] = TESTED
    """vLLM versions that it was tested with."""
