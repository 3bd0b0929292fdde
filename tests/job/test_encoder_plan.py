"""Encoder graphs of a run: proposed by the plan, kept for all processes, refused where there can be none, reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import ROOT
from vidpipe.engine import vllm_environment
from vidpipe.errors import CapabilityError, MediaError
from vidpipe.job import encoder_possible
from vidpipe.job.encoder_plan import STEP_TOKENS, store_graphs, stored_graphs
from vidpipe.job.encoder_possible import refuse_graphs, why_no_graphs_here
from vidpipe.job.encoder_report import sentences
from vidpipe.job.forecast import forecast
from vidpipe.job.prepare import Outlook
from vidpipe.job.prospect import Prospect, look_ahead
from vidpipe.plan.graph_packing import EncoderItem
from vidpipe.recipe.load import load_recipe
from vidpipe.record.run_dir import RunDir

VIDEO = EncoderItem(392, 8, 196)


def prospect(*assignments: str) -> Prospect:
    return look_ahead(load_recipe(ROOT / "recipes" / "demo.yaml", list(assignments)))


def outlook(*items: EncoderItem) -> Outlook:
    return Outlook(1, 1.0, 1, 1, 1, 1, 1, items)


@pytest.fixture
def run_dir(tmp_path: Path) -> RunDir:
    found = RunDir(tmp_path / "run")
    found.create()
    return found


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder_possible, "_is_cpu_build", lambda: False)


@pytest.mark.usefixtures("gpu")
def test_the_first_process_decides_for_all(run_dir: RunDir) -> None:
    ahead = prospect()
    store_graphs(run_dir, ahead, [outlook(VIDEO), MediaError("corrupt", "x"), outlook(VIDEO, VIDEO)])
    wanted = stored_graphs(run_dir, ahead)
    assert wanted is not None and not wanted.always
    assert wanted.graphs.graphs[0].tokens == VIDEO.tokens and wanted.graphs.eager_tokens == STEP_TOKENS + VIDEO.tokens
    store_graphs(run_dir, ahead, [outlook(EncoderItem(1000, 4, 1000))])
    assert stored_graphs(run_dir, ahead) == wanted


@pytest.mark.usefixtures("gpu")
def test_graphs_that_save_nothing_are_not_made_unless_wanted(run_dir: RunDir, tmp_path: Path) -> None:
    long = [outlook(EncoderItem(12_000, 64, 748))] * 8
    store_graphs(run_dir, prospect(), long)
    assert stored_graphs(run_dir, prospect()) is None
    assert "save no time" in json.loads(run_dir.graphs_file.read_text())["none_because"]
    other = RunDir(tmp_path / "other")
    other.create()
    always = prospect("engine.encoder_graphs=on")
    store_graphs(other, always, long)
    wanted = stored_graphs(other, always)
    assert wanted is not None and wanted.always
    assert wanted.graphs.graphs[-1].tokens == 12_000


@pytest.mark.usefixtures("gpu")
def test_auto_takes_none_for_what_was_never_measured() -> None:
    recipe = prospect().recipe
    for measured in ("Qwen3VLForConditionalGeneration", "LlavaOnevision2ForConditionalGeneration"):
        assert encoder_possible.why_no_graphs_here(recipe, [measured]) is None
    reason = encoder_possible.why_no_graphs_here(recipe, ["Ernie4_5_VLMoeForConditionalGeneration"])
    assert reason is not None and "never measured" in reason and "`on`" in reason
    wanted = prospect("engine.encoder_graphs=on").recipe
    assert encoder_possible.why_no_graphs_here(wanted, ["Ernie4_5_VLMoeForConditionalGeneration"]) is None


def test_a_run_says_why_it_has_none(run_dir: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder_possible, "_is_cpu_build", lambda: True)
    store_graphs(run_dir, prospect(), [outlook(VIDEO)])
    assert stored_graphs(run_dir, prospect()) is None
    assert "CPU build" in json.loads(run_dir.graphs_file.read_text())["none_because"]
    ahead = prospect("engine.encoder_graphs=on")
    with pytest.raises(CapabilityError, match=r"CPU build.*auto"):
        refuse_graphs(ahead.recipe, why_no_graphs_here(ahead.recipe, ahead.demands.architectures))


def test_where_no_engine_is_installed_another_machine_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_environment, "DISTRIBUTIONS", ())
    ahead = prospect("engine.encoder_graphs=on")
    assert why_no_graphs_here(ahead.recipe, ahead.demands.architectures) is None


def test_the_plan_proposes_budgets() -> None:
    found = forecast(prospect())
    assert found.graphs is not None
    budgets = [graph.tokens for graph in found.graphs.graphs.graphs]
    assert budgets == sorted(budgets) and {45, 48, 54} <= set(budgets), "the demo's shortest clips"
    assert found.graphs.padding.share < found.graphs.default_padding.share
    assert forecast(prospect("engine.encoder_graphs=off")).graphs is None


def test_what_nobody_counted_is_not_told() -> None:
    graphs = {"hits": 10, "misses": 2, "captured_tokens": 400, "used_tokens": 300, "encoder_s": 1.25}
    pruning = {"unpruned_tokens": 1000, "kept_tokens": 250}
    assert sentences([]) == sentences([{"graphs": None, "pruning": None}]) == []
    told = sentences([{"graphs": graphs, "pruning": None}, {"graphs": graphs, "pruning": pruning}])
    assert told == [
        "encoder graphs: 20 of 24 videos, 25.0% of their tokens padding; 2.5 s of encoding",
        "pruning kept 250 of 1000 encoded vision tokens",
    ]
