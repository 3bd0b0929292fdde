"""The table of what families can do, held against the engine that is installed."""

from __future__ import annotations

import inspect
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from vidpipe.engine import sglang_environment, torchvision_on_cpu, vllm_environment
from vidpipe.engine.abilities import _model_class, installed_abilities
from vidpipe.errors import EngineError
from vidpipe.models.family import Abilities
from vidpipe.models.qwen3_vl import Qwen3VL
from vidpipe.models.registry import FAMILIES, get_family

try:
    VERSION = " ".join(vllm_environment.installed())
except EngineError:
    pytest.skip("vLLM is not installed here", allow_module_level=True)


def qwen3_vl_with(**changes: object) -> Qwen3VL:
    family = Qwen3VL()
    family.abilities = replace(family.abilities, **changes)  # type: ignore[misc, arg-type]
    return family


@pytest.mark.parametrize("name", FAMILIES)
def test_what_is_written_is_true(name: str) -> None:
    family = get_family(name)
    installed = installed_abilities(family)
    assert installed.differences == ()
    assert installed.abilities == family.abilities
    if family.abilities.engine == "vllm":
        assert installed.engine_version == VERSION
    else:
        assert installed.engine_version == (None if find_spec("sglang") is None else "sglang 0.5.23")


def test_what_the_installed_sglang_does_not_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = tmp_path / "sglang" / "srt" / "models"
    models.mkdir(parents=True)
    (tmp_path / "sglang" / "__init__.py").write_text("raise AssertionError('importing it takes ten seconds')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sglang_environment, "installed", lambda: "0.4.0")
    unknown = installed_abilities(get_family("moss_vl"))
    assert unknown.differences == ("sglang 0.4.0 does not know MossVLForConditionalGeneration",)
    (models / "moss_vl.py").write_text("class MossVLForConditionalGeneration(nn.Module): ...")
    known = installed_abilities(get_family("moss_vl"))
    assert (known.differences, known.engine_version) == ((), "sglang 0.4.0")


def test_the_engine_wins_over_what_is_written() -> None:
    wrong = qwen3_vl_with(pruning=(), encoder_graphs=("image",), encoder_data_parallel=False)
    installed = installed_abilities(wrong)
    assert installed.abilities == Qwen3VL.abilities
    assert [line.split(":")[0] for line in installed.differences] == [
        "pruning",
        "encoder_graphs",
        "encoder_data_parallel",
    ]


IN_VLLM = [name for name in FAMILIES if get_family(name).abilities.engine == "vllm"]


@pytest.mark.parametrize("name", IN_VLLM)
def test_vllm_takes_the_media_that_a_row_may_have(name: str) -> None:
    abilities = get_family(name).abilities
    info = _model_class(abilities.architecture)._processor_factory.info
    most = object.__new__(info).get_supported_mm_limits()
    assert "video" in most
    assert "image" in most or abilities.images is None
    assert most["video"] is None or most["video"] > 1 or not abilities.several_videos


def test_vllm_has_a_loader_for_all_but_ernie() -> None:
    """Where it has one its frames are the rule `vllm`; without one it would take 32 of any clip."""
    from vllm.multimodal.video import get_video_loader_backend_for_processor as loader_for

    for name in IN_VLLM:
        _model_class(get_family(name).abilities.architecture)  # registers its loader
    assert loader_for("Qwen3VLVideoProcessor") == "qwen3_vl"
    assert loader_for("LlavaOnevision2VideoProcessor") == "llava_onevision2"
    assert loader_for("MiniMaxM3VLVideoProcessor") == "minimax_m3_vl"
    assert loader_for("Ernie4_5_VLMoeVideoProcessor") is None


def test_which_families_need_code_of_the_checkpoint() -> None:
    """LLaVA-OneVision-2: nobody else knows its configuration. ERNIE: vLLM reads what only that processor gives."""
    torchvision_on_cpu.install()
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from transformers.models.ernie4_5_vl_moe import processing_ernie4_5_vl_moe as in_library
    from vllm.model_executor.models import ernie45_vl
    from vllm.transformers_utils.config import _CONFIG_REGISTRY

    known = {
        name: all(word in CONFIG_MAPPING or word in _CONFIG_REGISTRY for word in get_family(name).model_types)
        for name in IN_VLLM
    }
    assert [name for name in IN_VLLM if get_family(name).abilities.needs_remote_code] == [
        "llava_onevision2",
        "ernie45_vl",
    ]
    assert known["qwen3_vl"] and known["minimax_m3"] and not known["llava_onevision2"]
    assert "hf_processor.spatial_conv_size" in inspect.getsource(ernie45_vl)
    assert "spatial_conv_size" not in inspect.getsource(in_library)


def test_a_model_that_the_engine_does_not_know() -> None:
    installed = installed_abilities(qwen3_vl_with(architecture="NoSuchModel"))
    assert "does not know NoSuchModel" in installed.differences[0]


def test_an_engine_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_environment, "DISTRIBUTIONS", ("no-such-vllm",))
    assert installed_abilities(Qwen3VL()).engine_version is None
    assert isinstance(installed_abilities(Qwen3VL()).abilities, Abilities)
