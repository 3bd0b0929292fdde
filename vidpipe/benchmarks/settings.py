"""Published settings: with which frames, pixels and words a model's makers got their numbers.

`vidpipe import BENCHMARK --setting NAME` writes them into the recipe. Only what was published stands here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vidpipe.benchmarks import prompts
from vidpipe.errors import RecipeError

PLACEHOLDER = "Qwen/Qwen3-VL-8B-Instruct"
"""A benchmark's own setting does not say which model is asked."""


@dataclass(frozen=True)
class Setting:
    """What a recipe needs beside its benchmark's own prompt, scorer and budget of tokens."""

    model: str = PLACEHOLDER
    source: str = ""
    """Where it was published; empty: it was not."""
    published: str = ""
    """The published score, percent."""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    overrides: tuple[Mapping[str, Any], ...] = ()
    system: str | None = None
    prompt: str | None = None
    """Template, where it is not the importer's."""
    scorer: str | None = None
    """Profile, where it is not the importer's."""
    engine: Mapping[str, Any] = field(default_factory=dict)
    subtitles: bool = False
    """Whether the setting shows subtitles."""
    row: Mapping[str, Any] = field(default_factory=dict)
    """Columns that every row gets."""


OV2_SOURCE = (
    "EvolvingLMMs-Lab/lmms-eval @3997a60 (llava-onevision2), README section 2.1 and "
    "examples/llava_onevision2_repro/run_frames.sh"
)


def _ov2(published: str, frames: int = 0, pixels: int = 0, **more: Any) -> Setting:
    """One frame a second, at most `frames`, each brought to about `pixels`: a cap, not a count."""
    size = {"max_frames": frames, "min_pixels": pixels, "max_pixels": pixels} if frames else {}
    return Setting(
        "lmms-lab-encoder/LLaVA-OneVision-2-8B-Instruct",
        OV2_SOURCE,
        published,
        {"rule": "ov2_eval", "fps": 1.0, **size, "time_base": "nominal"},
        system="You are a helpful assistant.",
        **more,
    )


def _by_duration(sizes: Mapping[str, tuple[int, int]]) -> tuple[Mapping[str, Any], ...]:
    return tuple(
        {
            "when": {"categories.duration": duration},
            "sampling": {"max_frames": frames, "min_pixels": pixels, "max_pixels": pixels},
        }
        for duration, (frames, pixels) in sizes.items()
    )


OV2: dict[str, Setting] = {
    "vsi": _ov2("70.94", 128, 153_664),
    "videomme": _ov2(
        "short 81.56, medium 72.56, long 62.33",
        overrides=_by_duration({"short": (128, 321_489), "medium": (256, 136_900), "long": (640, 102_400)}),
        prompt=prompts.videomme_ov2(),
        scorer="videomme.ov2",
    ),
    "lvbench": _ov2("55.46", 768, 84_100),
    "mlvu": _ov2("76.62", 512, 72_900),
    "videoeval_pro": _ov2("61.45", 768, 84_100),
    "timelens": _ov2("mIoU: activitynet 53.75, charades 53.49, qvhighlights 66.43", 128, 153_664),
}
"""Frames backend. JumpScore and the second numbers of Video-MME-v2 and TimeLens come from canvases of a codec."""

OV2_SUBTITLES: dict[str, Setting] = {
    "videomme": _ov2(
        "short 83.33, medium 78.00, long 69.22",
        overrides=_by_duration({"short": (128, 233_289), "medium": (448, 128_164), "long": (640, 84_100)}),
        prompt=prompts.videomme_lmms("The best answer is:"),
        scorer="videomme.ov2",
        subtitles=True,
    ),
    "videomme_v2": _ov2("18.34", 64, 330_000, prompt=prompts.videomme_v2(subtitles=True), subtitles=True),
}
"""Subtitles stand between the frames."""

QWEN3_VL_TOKENS = 224 * 1024
"""Of 32 x 32 pixels of two frames each; the recipe bounds frames x height x width."""
QWEN3_VL: dict[str, Setting] = {
    "videomme": Setting(
        "Qwen/Qwen3-VL-8B-Instruct",
        "QwenLM/Qwen3-VL issue 1540, an answer of its makers: 2 frames a second, at most 2048 frames and 224K video "
        "tokens, for all sizes of the model; prompt: lmms-eval @75571cf, videomme_doc_to_text_qwen3vl",
        sampling={"rule": "hf", "fps": 2.0, "max_frames": 2048, "max_pixels": QWEN3_VL_TOKENS * 2 * 32 * 32},
        prompt=prompts.videomme_qwen3(),
        scorer="videomme.lmms_main",
        engine={"args": {"max_model_len": 262_144}},
    )
}

OFFICIAL: dict[str, Setting] = {
    "mvbench": Setting(
        source="OpenGVLab/Ask-Anything @4dd8210, video_chat2/mvbench.ipynb (there: 16 middles of equal segments)",
        system=prompts.MVBENCH_SYSTEM,
        prompt=prompts.mvbench_official(),
        scorer="mvbench.official",
        row={"prefill": prompts.MVBENCH_PREFILL},
    )
}
"""How the benchmark's own code asks, where its importer has a harness's way."""

SETTINGS: dict[str, Mapping[str, Setting]] = {
    "official": OFFICIAL,
    "ov2": OV2,
    "ov2_subtitles": OV2_SUBTITLES,
    "qwen3_vl": QWEN3_VL,
}
"""Name of a setting -> benchmarks for which it was published."""


def get_setting(name: str, benchmark: str) -> Setting:
    """The setting of that name.

    Raises:
        RecipeError: nothing was published under that name, or not for this benchmark.
    """
    found = SETTINGS.get(name, {}).get(benchmark)
    if found is None:
        known = ", ".join(one for one, benchmarks in SETTINGS.items() if benchmark in benchmarks) or "none"
        raise RecipeError(f"--setting {name}: not published for {benchmark}, which has: {known}.")
    return found
