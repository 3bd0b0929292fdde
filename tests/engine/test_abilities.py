"""The table of what families can do, held against the engine that is installed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vidpipe.engine import vllm_environment
from vidpipe.engine.abilities import installed_abilities
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
    assert installed.engine_version == (VERSION if family.abilities.engine == "vllm" else None)


def test_the_engine_wins_over_what_is_written() -> None:
    wrong = qwen3_vl_with(pruning=(), encoder_graphs=("image",), encoder_data_parallel=False)
    installed = installed_abilities(wrong)
    assert installed.abilities == Qwen3VL.abilities
    assert [line.split(":")[0] for line in installed.differences] == [
        "pruning",
        "encoder_graphs",
        "encoder_data_parallel",
    ]


def test_a_model_that_the_engine_does_not_know() -> None:
    installed = installed_abilities(qwen3_vl_with(architecture="NoSuchModel"))
    assert "does not know NoSuchModel" in installed.differences[0]


def test_an_engine_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_environment, "DISTRIBUTIONS", ("no-such-vllm",))
    assert installed_abilities(Qwen3VL()).engine_version is None
    assert isinstance(installed_abilities(Qwen3VL()).abilities, Abilities)
