"""How repairs get into vLLM's processes, and how the run knows that they are there."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import ROOT
from vidpipe.engine import vllm_environment
from vidpipe.engine.interface import Demands
from vidpipe.engine.vllm_plugin import plugin, run, settings, worker
from vidpipe.engine.vllm_plugin.fingerprints import fingerprint, installed
from vidpipe.engine.vllm_plugin.gate import Finding
from vidpipe.engine.vllm_plugin.repair import Situation
from vidpipe.engine.vllm_plugin.repairs import REPAIRS, get_repair, wanted
from vidpipe.engine.vllm_plugin.settings import PluginSettings
from vidpipe.errors import CapabilityError, EngineError
from vidpipe.recipe.schema import EngineSection, Pruning

EVS = Demands(Pruning(method="evs", rate=0.5))
PRUNED = {"pruned_qwen3_vl", "cpu_pruning_flag"}


@pytest.fixture(autouse=True)
def _untouched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(settings.VARIABLE, raising=False)
    monkeypatch.setattr(plugin, "loaded", {})
    yield
    os.environ.pop(settings.VARIABLE, None)


class UsersExtension:
    """Stands for a worker extension that a user has."""

    def users_own(self) -> str:
        return "here"


def test_the_entry_point_that_is_packaged_is_the_one_that_loads() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    module, _, attribute = groups[plugin.GROUP][plugin.NAME].partition(":")
    assert getattr(import_module(module), attribute) is plugin.load


def test_settings_cross_the_environment() -> None:
    told = PluginSettings({"a": {"budgets": [64, 100]}}, "warn", "users.Extension")
    settings.write(told)
    assert settings.read() == told
    settings.write(None)
    assert settings.read() is None


def test_repairs_are_wanted_by_what_needs_them_only() -> None:
    assert not PRUNED & wanted(Situation(Demands(), cpu_build=True)).keys()
    assert wanted(Situation(EVS, cpu_build=True)).keys() >= PRUNED
    on_cuda = wanted(Situation(EVS, cpu_build=False))
    assert "pruned_qwen3_vl" in on_cuda and "cpu_pruning_flag" not in on_cuda


def stub_repair(monkeypatch: pytest.MonkeyPatch, finding: Finding, *, active: bool = True) -> list[Any]:
    applied: list[Any] = []
    stub = SimpleNamespace(apply=applied.append, active=lambda _: active)
    monkeypatch.setattr(plugin, "REPAIRS", {"stub": ""})
    for module in (plugin, worker):
        monkeypatch.setattr(module, "get_repair", lambda _: stub)
    monkeypatch.setattr(plugin, "examine", lambda _: finding)
    return applied


FAULTY = Finding("1", True, (), ("fault",))


def test_without_a_run_nothing_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    applied = stub_repair(monkeypatch, FAULTY)
    plugin.load()
    assert not applied and not plugin.loaded


def test_a_repair_is_made_once_with_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    applied = stub_repair(monkeypatch, FAULTY)
    settings.write(PluginSettings({"stub": {"budgets": [1]}}))
    plugin.load()
    plugin.load()
    assert applied == [{"budgets": [1]}]
    assert worker.Report().vidpipe_repairs() == {"stub": plugin.APPLIED}


def test_what_is_right_already_is_reported_as_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    applied = stub_repair(monkeypatch, Finding("2", False, ("m:f",), ()))
    settings.write(PluginSettings({"stub": {}}))
    plugin.load()
    assert not applied and worker.Report().vidpipe_repairs() == {"stub": plugin.NOT_NEEDED}


def test_what_cannot_be_repaired_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    stub_repair(monkeypatch, Finding("2", True, ("m:f",), ("fault",)))
    settings.write(PluginSettings({"stub": {}}))
    with pytest.raises(CapabilityError, match="m:f"):
        plugin.load()


def verify(reports: list[dict[str, str]]) -> None:
    plugin_run = run.PluginRun(EVS, EngineSection())
    plugin_run.verify(SimpleNamespace(collective_rpc=lambda method: reports))


def test_a_worker_without_a_repair_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    good = dict.fromkeys(run.PluginRun(EVS, EngineSection())._told.repairs, plugin.APPLIED)
    verify([good, good])
    with pytest.raises(EngineError, match=r"pruned_qwen3_vl in vLLM's worker 1"):
        verify([good, {}])
    stub_repair(monkeypatch, FAULTY, active=False)
    settings.write(PluginSettings({"stub": {}}))
    assert worker.Report().vidpipe_repairs()["stub"].startswith(worker.MISSING)  # not loaded at all
    plugin.load()
    assert worker.Report().vidpipe_repairs()["stub"].startswith(worker.MISSING)  # loaded, without effect
    with pytest.raises(EngineError, match="pruned_qwen3_vl"):
        verify([good | {"pruned_qwen3_vl": f"{worker.MISSING}: for a reason"}])


def test_the_users_own_worker_extension_stays() -> None:
    name = f"{__name__}.UsersExtension"
    assert worker.Extension is worker.Report
    plugin_run = run.PluginRun(EVS, EngineSection(args={"worker_extension_cls": name}))
    settings.write(plugin_run._told)
    assert plugin_run.engine_arguments() == {"worker_extension_cls": worker.EXTENSION}
    module, _, attribute = worker.EXTENSION.rpartition(".")
    joined = getattr(import_module(module), attribute)
    assert joined is getattr(import_module(module), attribute)  # vLLM asks once an engine, and compares
    assert joined().users_own() == "here" and joined().vidpipe_repairs().keys() >= PRUNED


def test_a_run_without_demands_leaves_vllm_alone() -> None:
    settings.write(PluginSettings({"left over": {}}))
    plain = run.PluginRun(Demands(), EngineSection(args={"worker_extension_cls": "x.Y"}))
    assert plain.engine_arguments() == {}
    plain.begin()
    assert settings.read() is None


def test_processes_that_would_not_load_the_plugin_are_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "1")
    monkeypatch.setattr(plugin, "is_installed", lambda: True)
    monkeypatch.setenv("VLLM_PLUGINS", "other")
    with pytest.raises(EngineError, match="VLLM_PLUGINS is 'other'"):
        run.PluginRun(EVS, EngineSection()).begin()
    monkeypatch.setattr(plugin, "is_installed", lambda: False)
    with pytest.raises(EngineError, match="pip install -e"):
        run.PluginRun(EVS, EngineSection()).begin()


SOURCE = """
class A:
    @property
    def f(self):
        return 1

    def g(self):
        return 2
"""


def test_a_fingerprint_follows_its_function_alone() -> None:
    assert fingerprint(SOURCE, "A.f") != fingerprint(SOURCE, "A.g")
    assert fingerprint(SOURCE, "A.f") == fingerprint(SOURCE.replace("return 2", "return 3"), "A.f")
    assert fingerprint(SOURCE, "A.g") != fingerprint(SOURCE.replace("return 2", "return 3"), "A.g")
    assert fingerprint(SOURCE, "A.h") is None and fingerprint(SOURCE, "B") is None
    assert installed("vllm.no.such.module:f") is None


@pytest.mark.parametrize("name", REPAIRS)
def test_every_repair_knows_the_installed_version(name: str) -> None:
    """Its functions, its tests; where the version is a tested one."""
    repair = get_repair(name)
    assert repair.name == name
    assert vllm_environment.installed()[1].partition("+")[0] in repair.tested
    unknown = {function: installed(function) for function, known in repair.relies_on.items()}
    assert {f for f, found in unknown.items() if found not in repair.relies_on[f]} == set(), unknown
    for fault in repair.faults:
        file, _, test = fault.shown_by.partition("::")
        assert f"def {test}(" in (ROOT / file).read_text(), fault.shown_by
