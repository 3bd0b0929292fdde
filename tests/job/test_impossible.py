"""Switches that cannot work are refused with the reason and the way out."""

from __future__ import annotations

from typing import Any

import pytest

from vidpipe.errors import CapabilityError
from vidpipe.job.impossible import refuse_impossible, with_engine, with_engine_args
from vidpipe.models.registry import get_family
from vidpipe.recipe.schema import Recipe


def refuse(family: str, **keys: Any) -> None:
    model = {"path": "m", **keys.pop("model", {})}
    architectures = keys.pop("architectures", (get_family(family).abilities.architecture,))
    recipe = Recipe.model_validate({"manifest": "m", "model": model, **keys})
    refuse_impossible(recipe, get_family(family), architectures)


EVS = {"method": "evs", "rate": 0.5}
REMOTE = {"trust_remote_code": True}
SGLANG = {"name": "sglang"}
WARM = {"seed": 1, "temperature": 0.5}


@pytest.mark.parametrize(
    ("family", "keys", "words"),
    [
        ("minimax_m3", {"pruning": EVS}, r"pruning\.method: minimax_m3 has no evs.*qwen3_vl.*max_pixels"),
        ("ernie45_vl", {"pruning": EVS, "model": REMOTE}, r"ignore the switch.*qwen3_vl"),
        (
            "qwen3_vl",
            {"pruning": EVS, "engine": {"encoder_graphs": "on", "args": {"mm_encoder_tp_mode": "data"}}},
            r"never run",
        ),
        ("qwen3_vl", {"pruning": EVS, "architectures": ("ColQwen3Model",)}, r"ColQwen3Model.*wrong positions.*Moe"),
        ("minimax_m3", {"engine": {"encoder_graphs": "on"}}, r"none for MiniMax.*Qwen3VL.*LlavaOnevision2.*Ernie"),
        ("qwen3_vl", {"engine": {"encoder_graphs": "on", "args": {"enforce_eager": True}}}, r"enforce_eager"),
        ("qwen3_vl", {"engine": {"encoder_graphs": "on", "name": "fake"}}, r"engine fake has none"),
        (
            "ernie45_vl",
            {"engine": {"args": {"mm_encoder_tp_mode": "data"}}, "model": REMOTE},
            r"no data-parallel encoder.*qwen3_vl, minimax_m3",
        ),
        ("moss_vl", {"model": REMOTE}, r"engine\.name: moss_vl runs in sglang, not in vllm.*vllm: qwen3_vl, llava"),
        ("minimax_m3", {"engine": SGLANG}, r"runs in vllm, not in sglang\. Families for sglang: qwen3_vl, moss_vl"),
        ("moss_vl", {"engine": SGLANG}, r"model\.trust_remote_code"),
        ("moss_vl", {"engine": SGLANG, "model": REMOTE, "pruning": EVS}, r"pruning: SGLang drops no"),
        ("qwen3_vl", {"engine": SGLANG, "pruning": EVS}, r"pruning: SGLang drops no.*engine\.name: vllm"),
        ("qwen3_vl", {"engine": {**SGLANG, "encoder_graphs": "on"}}, r"engine sglang has none"),
        ("qwen3_vl", {"engine": SGLANG, "generation": WARM}, r"generation\.seed: SGLang takes no notice.*true"),
        (
            "qwen3_vl",
            {"engine": SGLANG, "overrides": [{"when": {"a": 1}, "generation": WARM}]},
            r"overrides\[0\]\.generation: SGLang takes no notice",
        ),
        (
            "qwen3_vl",
            {"engine": SGLANG, "retry": {"rules": [{"when": ["empty"], "generation": {"temperature": 0.5}}]}},
            r"retry\.rules\[0\]\.generation\.temperature: SGLang takes no notice",
        ),
        (
            "moss_vl",
            {"engine": {**SGLANG, "args": {"attention_backend": "fa3"}}, "model": REMOTE},
            r"hidden from the text before them by flashinfer's prefill only; found 'fa3'",
        ),
        (
            "moss_vl",
            {"engine": {**SGLANG, "args": {"chunked_prefill_size": 4096}}, "model": REMOTE},
            r"chunked_prefill_size 4096.*one piece",
        ),
        ("llava_onevision2", {}, r"model\.trust_remote_code"),
    ],
)
def test_refused(family: str, keys: dict[str, Any], words: str) -> None:
    with pytest.raises(CapabilityError, match=words):
        refuse(family, **keys)


def test_a_family_brings_the_arguments_that_it_needs() -> None:
    recipe = Recipe.model_validate({"manifest": "m", "model": {"path": "m"}, "engine": {"args": {"seed": 1}}})
    minimax = with_engine_args(recipe, get_family("minimax_m3"))
    assert minimax.engine.args == {"seed": 1, "mm_processor_cache_gb": 0}
    assert with_engine_args(recipe, get_family("qwen3_vl")) is recipe
    other = Recipe.model_validate(
        {"manifest": "m", "model": {"path": "m"}, "engine": {"args": {"mm_processor_cache_gb": 4}}}
    )
    with pytest.raises(CapabilityError, match=r"engine\.args\.mm_processor_cache_gb.*times"):
        with_engine_args(other, get_family("minimax_m3"))


@pytest.mark.parametrize("family", ["qwen3_vl", "minimax_m3"])
def test_allowed(family: str) -> None:
    refuse(family)
    refuse(family, engine={"args": {"mm_encoder_tp_mode": "data"}})


def test_allowed_in_sglang() -> None:
    refuse("moss_vl", engine=SGLANG, model=REMOTE)
    refuse("qwen3_vl", engine={**SGLANG, "args": {"attention_backend": "fa3", "chunked_prefill_size": 4096}})
    heeded = {**SGLANG, "args": {"enable_deterministic_inference": True}}
    refuse("qwen3_vl", engine=heeded, generation=WARM)
    refuse("qwen3_vl", engine=SGLANG, generation={"seed": 1})  # at temperature 0 a seed changes nothing
    longer = {"when": ["length"], "generation": {"max_tokens": 256}}
    refuse("qwen3_vl", engine=SGLANG, retry={"rules": [longer]})


@pytest.mark.parametrize(
    ("family", "said", "taken"),
    [
        ("moss_vl", {}, "sglang"),
        ("moss_vl", {"engine": {"args": {"tp_size": 2}}}, "sglang"),
        ("moss_vl", {"engine": {"name": "vllm"}}, "vllm"),
        ("moss_vl", {"engine": {"name": "fake"}}, "fake"),
        ("qwen3_vl", {}, "vllm"),
        ("qwen3_vl", {"engine": {"name": "sglang"}}, "sglang"),
    ],
)
def test_a_recipe_without_an_engine_gets_the_familys(family: str, said: dict[str, Any], taken: str) -> None:
    recipe = Recipe.model_validate({"manifest": "m", "model": {"path": "m"}, **said})
    found = with_engine(recipe, get_family(family)).engine
    assert found.name == taken and found.args == recipe.engine.args


def test_graphs_are_allowed_with_pruning_and_where_vllm_has_none() -> None:
    refuse("qwen3_vl", pruning=EVS, engine={"encoder_graphs": "on"})
    refuse("llava_onevision2", engine={"encoder_graphs": "on"}, model=REMOTE)
    refuse("ernie45_vl", engine={"encoder_graphs": "on"}, model=REMOTE)


def test_pruning_is_allowed_where_it_is_repaired() -> None:
    refuse("qwen3_vl", pruning=EVS)
    refuse("qwen3_vl", pruning={"method": "vidcom2", "rate": 0.5})
    refuse("qwen3_vl", pruning=EVS, architectures=("Qwen3VLMoeForConditionalGeneration",))
    refuse("qwen3_vl", pruning=EVS, architectures=("ColQwen3Model",), engine={"name": "fake"})


def test_remote_code_and_other_engines_do_not_matter_without_a_model() -> None:
    refuse("llava_onevision2", engine={"name": "fake"})
    refuse("moss_vl", engine={"name": "fake"})
