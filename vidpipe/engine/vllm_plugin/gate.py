"""Whether a repair may be made in the installed vLLM. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from vidpipe.engine.vllm_plugin.settings import UnknownVersion


@dataclass(frozen=True)
class Finding:
    """What was found out about one repair in the installed vLLM."""

    version: str
    """Of vLLM, without the build's own suffix."""
    tested: bool
    """Whether the repair was tested with that version."""
    changed: Sequence[str]
    """Functions that it relies on whose source is none of the known ones."""
    faults: Sequence[str]
    """Its faults that the installed version shows."""


@dataclass(frozen=True)
class Verdict:
    """What is to be done."""

    action: Literal["apply", "leave", "refuse"]
    reason: str = ""
    """Why it is left alone or refused; with `apply`, a warning or nothing."""


def judge(repair: str, found: Finding, unknown_version: UnknownVersion) -> Verdict:
    """Repair what is faulty and known, leave alone what is right, and guess only if the recipe says so.

    A fault in functions that have changed is never repaired: the change could not be right
    for a function that nobody has looked at.
    """
    if not found.faults:
        return Verdict("leave", f"vLLM {found.version} has it right")
    shows = f"vLLM {found.version} shows {', '.join(found.faults)}"
    if found.changed:
        return Verdict(
            "refuse",
            f"{shows}, but {', '.join(found.changed)} is not the function that the repair {repair} was written for. "
            "Install a version that was tested (docs/pruning.md), or remove the switch that needs the repair.",
        )
    if found.tested:
        return Verdict("apply")
    if unknown_version == "warn":
        return Verdict("apply", f"{shows}; the repair {repair} was not tested with this version")
    return Verdict(
        "refuse",
        f"{shows}, and the repair {repair} was not tested with this version. Install one that was (docs/pruning.md), "
        "or set engine.unknown_version: warn.",
    )
