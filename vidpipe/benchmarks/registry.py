"""Names of scorer profiles and importers; what a name stands for is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from vidpipe.errors import CapabilityError
from vidpipe.wording import did_you_mean

if TYPE_CHECKING:
    from vidpipe.benchmarks.importer import Importer
    from vidpipe.benchmarks.profile import Profile

PROFILES: dict[str, str] = {
    "activitynetqa.exact": "vidpipe.benchmarks.activitynetqa:EXACT",
    "activitynetqa.judge": "vidpipe.benchmarks.activitynetqa:JUDGE",
    "activitynetqa.judge_score": "vidpipe.benchmarks.activitynetqa:JUDGE_SCORE",
    "charades.lenient.miou": "vidpipe.benchmarks.grounding:PROFILES",
    "charades.lenient.r30": "vidpipe.benchmarks.grounding:PROFILES",
    "charades.lenient.r50": "vidpipe.benchmarks.grounding:PROFILES",
    "charades.lenient.r70": "vidpipe.benchmarks.grounding:PROFILES",
    "charades.lmms_main.miou": "vidpipe.benchmarks.grounding:PROFILES",
    "charades.lmms_main.r30": "vidpipe.benchmarks.grounding:PROFILES",
    "charades.lmms_main.r50": "vidpipe.benchmarks.grounding:PROFILES",
    "charades.lmms_main.r70": "vidpipe.benchmarks.grounding:PROFILES",
    "egoschema.lmms_main": "vidpipe.benchmarks.candidates:EGOSCHEMA",
    "exact": "vidpipe.benchmarks.exact:EXACT",
    "jumpscore.ov2": "vidpipe.benchmarks.jumpscore:OV2",
    "longvideobench.lmms_main": "vidpipe.benchmarks.multiple_choice:LONGVIDEOBENCH_LMMS",
    "lvbench.ov2": "vidpipe.benchmarks.multiple_choice:LVBENCH_OV2",
    "mlvu.official": "vidpipe.benchmarks.multiple_choice:MLVU_OFFICIAL",
    "mvbench.lmms_main": "vidpipe.benchmarks.multiple_choice:MVBENCH_LMMS",
    "mvbench.official": "vidpipe.benchmarks.multiple_choice:MVBENCH_OFFICIAL",
    "nextqa.lmms_main": "vidpipe.benchmarks.candidates:NEXTQA",
    "revsi.lmms_main": "vidpipe.benchmarks.revsi:LMMS_MAIN",
    "tempcompass.judge": "vidpipe.benchmarks.tempcompass:JUDGE",
    "tempcompass.rules": "vidpipe.benchmarks.tempcompass:RULES",
    "timelens.lenient.miou": "vidpipe.benchmarks.grounding:PROFILES",
    "timelens.lenient.r30": "vidpipe.benchmarks.grounding:PROFILES",
    "timelens.lenient.r50": "vidpipe.benchmarks.grounding:PROFILES",
    "timelens.lenient.r70": "vidpipe.benchmarks.grounding:PROFILES",
    "timelens.lmms_main.miou": "vidpipe.benchmarks.grounding:PROFILES",
    "timelens.lmms_main.r30": "vidpipe.benchmarks.grounding:PROFILES",
    "timelens.lmms_main.r50": "vidpipe.benchmarks.grounding:PROFILES",
    "timelens.lmms_main.r70": "vidpipe.benchmarks.grounding:PROFILES",
    "videoeval_pro.ov2": "vidpipe.benchmarks.multiple_choice:VIDEOEVAL_PRO_OV2",
    "videomme.lmms_main": "vidpipe.benchmarks.multiple_choice:VIDEOMME_LMMS",
    "videomme.official": "vidpipe.benchmarks.multiple_choice:VIDEOMME_OFFICIAL",
    "videomme.ov2": "vidpipe.benchmarks.multiple_choice:VIDEOMME_OV2",
    "videomme_v2.ov2": "vidpipe.benchmarks.videomme_v2:OV2",
    "videomme_v2.rows": "vidpipe.benchmarks.videomme_v2:ROWS",
    "vsi.lenient": "vidpipe.benchmarks.vsi:LENIENT",
    "vsi.lmms_main": "vidpipe.benchmarks.vsi:LMMS_MAIN",
    "vsi.official": "vidpipe.benchmarks.vsi:OFFICIAL",
    "vsi.vlmevalkit": "vidpipe.benchmarks.vsi:VLMEVALKIT",
}
"""Profile -> `module:object`; the object is the profile, or has it under its name."""
IMPORTERS: tuple[str, ...] = (
    "activitynetqa",
    "charades",
    "egoschema",
    "jumpscore",
    "longvideobench",
    "lvbench",
    "mlvu",
    "mvbench",
    "nextqa",
    "revsi",
    "tempcompass",
    "timelens",
    "videoeval_pro",
    "videomme",
    "videomme_v2",
    "vsi",
)
"""Benchmarks, each a module of `vidpipe.benchmarks.importers` that has its `IMPORTER`."""


def get_profile(name: str) -> Profile:
    """The profile of that name.

    Raises:
        CapabilityError: there is none.
    """
    if name not in PROFILES:
        hint = did_you_mean(name, PROFILES, then=f"There are: {', '.join(PROFILES)}.")
        raise CapabilityError(f"scorer profile {name!r} is not known. {hint}")
    module, _, attribute = PROFILES[name].partition(":")
    found = getattr(import_module(module), attribute)
    profile: Profile = found[name] if isinstance(found, dict) else found
    return profile


def get_importer(name: str) -> Importer:
    """The importer of that benchmark.

    Raises:
        CapabilityError: there is none.
    """
    if name not in IMPORTERS:
        raise CapabilityError(f"benchmark {name!r} is not known. Choose one of: {', '.join(IMPORTERS)}.")
    importer: Importer = import_module(f"vidpipe.benchmarks.importers.{name}").IMPORTER
    return importer
