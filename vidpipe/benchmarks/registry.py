"""Names of scorer profiles and importers; what a name stands for is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from vidpipe.errors import CapabilityError

if TYPE_CHECKING:
    from vidpipe.benchmarks.profile import Profile

PROFILES: dict[str, str] = {
    "vsi.lenient": "vidpipe.benchmarks.vsi:LENIENT",
    "vsi.lmms_main": "vidpipe.benchmarks.vsi:LMMS_MAIN",
    "vsi.official": "vidpipe.benchmarks.vsi:OFFICIAL",
    "vsi.vlmevalkit": "vidpipe.benchmarks.vsi:VLMEVALKIT",
}
"""Profile -> `module:object`."""


def get_profile(name: str) -> Profile:
    """The profile of that name.

    Raises:
        CapabilityError: there is none.
    """
    if name not in PROFILES:
        raise CapabilityError(f"scorer profile {name!r} is not known. Choose one of: {', '.join(PROFILES)}.")
    module, _, attribute = PROFILES[name].partition(":")
    profile: Profile = getattr(import_module(module), attribute)
    return profile
