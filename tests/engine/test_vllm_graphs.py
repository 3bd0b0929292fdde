"""What vLLM is told of encoder graphs, and what is reported of them; the engine is a stand-in here."""

from __future__ import annotations

from typing import Any

import pytest

from vidpipe.engine import vllm_graphs
from vidpipe.engine.interface import WantedGraphs
from vidpipe.engine.vllm_plugin import plugin
from vidpipe.engine.vllm_plugin.gate import Finding
from vidpipe.errors import CapabilityError
from vidpipe.plan.graph_packing import Graph, Graphs

GRAPHS = Graphs((Graph(392, 8, 196), Graph(1960, 40, 196)), 5, 2048)
COUNTED = {
    "hits": 3,
    "misses": 1,
    "captured_tokens": 400,
    "used_tokens": 300,
    "unpruned_tokens": 700,
    "kept_tokens": 350,
    "encoder_s": 0.5,
}


class Engine:
    """Answers `collective_rpc` as two tensor-parallel workers would."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, tuple[Any, ...]]] = []

    def collective_rpc(self, method: str, args: tuple[Any, ...] = ()) -> list[Any]:
        self.asked.append((method, args))
        answers = {
            "vidpipe_encoder": [dict(COUNTED), {**COUNTED, "hits": 99}],
            "vidpipe_time_encoder": [{"replay": [1], "eager": [2]}, {"replay": [3], "eager": [4]}],
        }
        return answers.get(method, [None, None])


@pytest.mark.parametrize("users", [None, 3, {"mode": 3, "cudagraph_capture_sizes": [1, 2]}])
def test_budgets_join_what_the_recipe_says(users: Any) -> None:
    found = vllm_graphs.arguments(WantedGraphs(GRAPHS, always=False), users)["compilation_config"]
    assert found["encoder_cudagraph_token_budgets"] == [392, 1960]
    assert found["encoder_cudagraph_max_vision_items_per_batch"] == 5
    assert found["encoder_cudagraph_max_frames_per_batch"] == 40
    assert found["cudagraph_mm_encoder"] is True
    assert found.get("mode") == (None if users is None else 3)
    assert ("cudagraph_capture_sizes" in found) == isinstance(users, dict)


def test_without_graphs_nothing_is_said() -> None:
    assert vllm_graphs.arguments(None, {"mode": 3}) == {}


@pytest.mark.parametrize("key", ["cudagraph_mm_encoder", "encoder_cudagraph_token_budgets"])
def test_graphs_past_the_recipe_are_refused(key: str) -> None:
    with pytest.raises(CapabilityError, match=rf"{key}.*engine\.encoder_graphs"):
        vllm_graphs.refuse_own_keys({"compilation_config": {key: [64]}})
    vllm_graphs.refuse_own_keys({"compilation_config": {"mode": 3}})
    vllm_graphs.refuse_own_keys({"compilation_config": 3})


@pytest.mark.parametrize(("version", "changed"), [("0.32.0", ("f",)), ("0.99.0", ())])
def test_auto_does_without_graphs_in_a_vllm_that_nobody_tried(
    monkeypatch: pytest.MonkeyPatch, version: str, changed: tuple[str, ...]
) -> None:
    """It is the default: a new vLLM must not stop every run. `on` is refused when the plugin loads."""
    finding = Finding(version, version == "0.32.0", changed, ("packer overrun",))
    monkeypatch.setattr(plugin, "examine", lambda repair: finding)
    auto, on = WantedGraphs(GRAPHS, always=False), WantedGraphs(GRAPHS, always=True)
    assert vllm_graphs.unless_unknown(auto, "refuse") is None
    assert vllm_graphs.unless_unknown(on, "refuse") is on
    assert vllm_graphs.unless_unknown(auto, "warn") is (None if changed else auto)
    assert vllm_graphs.unless_unknown(None, "refuse") is None


def test_all_workers_divide_calls_by_the_same_timings() -> None:
    engine = Engine()
    timings = vllm_graphs.settle(engine, WantedGraphs(GRAPHS, always=False))
    assert timings == {"replay": [1], "eager": [2]}
    names = [name for name, _ in engine.asked]
    assert names == ["vidpipe_time_encoder", "vidpipe_encoder_costs", "vidpipe_encoder_reset"]
    assert engine.asked[1][1] == (timings,)


@pytest.mark.parametrize("wanted", [None, WantedGraphs(GRAPHS, always=True)])
def test_nothing_is_measured_where_it_decides_nothing(wanted: WantedGraphs | None) -> None:
    engine = Engine()
    assert vllm_graphs.settle(engine, wanted) is None
    assert [name for name, _ in engine.asked] == ["vidpipe_encoder_reset"]


def test_what_nobody_counted_is_null() -> None:
    wanted = WantedGraphs(GRAPHS, always=True)
    assert vllm_graphs.report(Engine(), None, False, None) == {"graphs": None, "pruning": None}
    pruned = vllm_graphs.report(Engine(), None, True, None)
    assert pruned == {"graphs": None, "pruning": {"unpruned_tokens": 700, "kept_tokens": 350}}
    graphs = vllm_graphs.report(Engine(), wanted, False, None)["graphs"]
    assert graphs["hits"] == 3, "workers compute together: one is counted"
    assert graphs["padded_share"] == 0.25 and [graph["tokens"] for graph in graphs["graphs"]] == [392, 1960]
