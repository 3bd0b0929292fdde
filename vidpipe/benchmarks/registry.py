"""Names of scorer profiles and importers; what a name stands for is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from vidpipe.errors import CapabilityError

if TYPE_CHECKING:
    from vidpipe.benchmarks.importer import Importer
    from vidpipe.benchmarks.profile import Profile

PROFILES: dict[str, str] = {
    "longvideobench.lmms_main": "vidpipe.benchmarks.multiple_choice:LONGVIDEOBENCH_LMMS",
    "lvbench.ov2": "vidpipe.benchmarks.multiple_choice:LVBENCH_OV2",
    "mlvu.official": "vidpipe.benchmarks.multiple_choice:MLVU_OFFICIAL",
    "mvbench.lmms_main": "vidpipe.benchmarks.multiple_choice:MVBENCH_LMMS",
    "mvbench.official": "vidpipe.benchmarks.multiple_choice:MVBENCH_OFFICIAL",
    "revsi.lmms_main": "vidpipe.benchmarks.revsi:LMMS_MAIN",
    "videoeval_pro.ov2": "vidpipe.benchmarks.multiple_choice:VIDEOEVAL_PRO_OV2",
    "videomme.lmms_main": "vidpipe.benchmarks.multiple_choice:VIDEOMME_LMMS",
    "videomme.official": "vidpipe.benchmarks.multiple_choice:VIDEOMME_OFFICIAL",
    "videomme.ov2": "vidpipe.benchmarks.multiple_choice:VIDEOMME_OV2",
    "vsi.lenient": "vidpipe.benchmarks.vsi:LENIENT",
    "vsi.lmms_main": "vidpipe.benchmarks.vsi:LMMS_MAIN",
    "vsi.official": "vidpipe.benchmarks.vsi:OFFICIAL",
    "vsi.vlmevalkit": "vidpipe.benchmarks.vsi:VLMEVALKIT",
}
"""Profile -> `module:object`."""
IMPORTERS: dict[str, str] = {
    "mvbench": "vidpipe.benchmarks.importers.mvbench",
    "videomme": "vidpipe.benchmarks.importers.videomme",
    "vsi": "vidpipe.benchmarks.importers.vsi",
}
"""Benchmark -> module that has its `IMPORTER`."""


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


def get_importer(name: str) -> Importer:
    """The importer of that benchmark.

    Raises:
        CapabilityError: there is none.
    """
    if name not in IMPORTERS:
        raise CapabilityError(f"benchmark {name!r} is not known. Choose one of: {', '.join(IMPORTERS)}.")
    importer: Importer = import_module(IMPORTERS[name]).IMPORTER
    return importer
