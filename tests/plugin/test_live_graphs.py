"""Encoder graphs on the live engine: the CPU build with stub graphs, whose padding is NaN.

What a graph run must show here: the encoder's rows and the answers are those of a run without,
with pruning too; every item is counted; what does not fit runs without a graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.checkpoints import ernie45_vl, llava_onevision2
from tests.conftest import TINY_MODEL
from tests.plugin import stub_graphs
from vidpipe.engine import vllm_graphs
from vidpipe.engine.checkpoint import read_checkpoint
from vidpipe.engine.interface import Demands, WantedGraphs
from vidpipe.engine.vllm_engine import VllmEngine
from vidpipe.engine.vllm_plugin import graph_timing, settings
from vidpipe.plan.graph_packing import EncoderItem, Graph, Graphs
from vidpipe.recipe.schema import EngineSection, Model, Pruning

pytestmark = pytest.mark.engine

CHATML = "<|im_start|>user\n<|vision_start|><|video_pad|><|vision_end|>{}<|im_end|>\n<|im_start|>assistant\n"
SIZES = ((8, 64, 64), (16, 96, 64), (4, 128, 96), (8, 64, 64))
"""Frames, height and width of four videos; multiples of 32."""


@dataclass
class Live:
    """An engine, and videos for it."""

    engine: VllmEngine
    prompt: str
    sizes: tuple[tuple[int, int, int], ...]
    items: tuple[EncoderItem, ...]
    """The videos as its encoder sees them."""

    def answers(self) -> tuple[list[list[int]], list[Any]]:
        """Tokens of the answers, and the encoder's rows of each video; encoded anew, all in one call."""
        from vllm import SamplingParams

        llm = self.engine._engine
        self.take_turn()
        llm.reset_prefix_cache()
        llm.reset_encoder_cache()
        kept: list[Any] = []
        runner = llm.collective_rpc(lambda worker: worker.model_runner)[0]
        cache = runner._cache_encoder_output

        def keep(mm_hash: str, output: Any, *rest: Any) -> None:
            kept.append(output.clone())
            cache(mm_hash, output, *rest)

        runner._cache_encoder_output = keep
        for number, size in enumerate(self.sizes):
            rendered = llm.renderer.render_cmpl([self._asked(number, size)])[0]
            llm.add_request(f"{id(kept)}-{number}", rendered, SamplingParams(temperature=0, max_tokens=4))
        tokens: dict[str, list[int]] = {}
        while llm.has_unfinished_requests():
            tokens |= {one.request_id: list(one.outputs[0].token_ids) for one in llm.step() if one.finished}
        runner._cache_encoder_output = cache
        return [tokens[key] for key in sorted(tokens)], kept

    def _asked(self, number: int, size: tuple[int, int, int]) -> dict[str, Any]:
        frames, height, width = size
        pixels = np.random.default_rng(number).integers(0, 255, (frames, height, width, 3), np.uint8)
        told = {"fps": 2.0, "duration": frames / 2, "total_num_frames": frames, "frames_indices": list(range(frames))}
        metadata = {**told, "video_backend": "vidpipe", "do_sample_frames": False}
        return {
            "prompt": self.prompt.format("What?"),
            "multi_modal_data": {"video": [(pixels, metadata)]},
            "multi_modal_uuids": {"video": [f"video-{number}"]},
        }

    def take_turn(self) -> None:
        """The engines of this file share a process, and with it what the process is told of graphs."""
        settings.write(self.engine._plugin._told)

    def install(self) -> Any:
        """A manager with stub graphs, counters at 0."""
        self.take_turn()
        self.engine._engine.collective_rpc("vidpipe_encoder_reset")
        return stub_graphs.install(self.engine._engine)

    def report(self) -> dict[str, Any]:
        found = self.engine.encoder_report()
        assert found is not None
        return found


def start(
    folder: Path,
    prompt: str,
    items: tuple[EncoderItem, ...],
    sizes: tuple[tuple[int, int, int], ...] = SIZES,
    pruning: Pruning | None = None,
) -> Iterator[Live]:
    section = EngineSection(args={"max_model_len": 8192, "max_num_seqs": 8})
    model = Model(path=str(folder), trust_remote_code=folder != TINY_MODEL)
    architectures = tuple(read_checkpoint(str(folder), folder).config["architectures"])
    engine = VllmEngine(model, section, str(folder), Demands(pruning, architectures))
    engine.start(WantedGraphs(graphs_for(items), always=True))
    yield Live(engine, prompt, sizes, items)
    engine.stop()


def graphs_for(items: tuple[EncoderItem, ...]) -> Graphs:
    """Two graphs: one takes the smaller videos together, one takes the largest; neither exactly."""
    small = sorted(items, key=lambda item: item.tokens)
    longest = max(item.patches_per_sequence for item in items)
    together = sum(item.tokens for item in small[:2])
    return Graphs(
        (
            Graph(together + 3, sum(item.sequences for item in small[:2]), longest),
            Graph(small[-1].tokens + 5, small[-1].sequences + 2, longest),
        ),
        max_items=2,
        eager_tokens=512,
    )


QWEN_ITEMS = tuple(EncoderItem(t // 2 * h * w // 32**2, t // 2, h * w // 16**2) for t, h, w in SIZES)


@pytest.fixture(scope="module")
def qwen3_vl() -> Iterator[Live]:
    yield from start(TINY_MODEL, CHATML, QWEN_ITEMS, pruning=Pruning(method="evs", rate=0.5))


@pytest.fixture(scope="module")
def onevision(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("llava_onevision2")
    llava_onevision2.make(folder)
    sides = [(round(h / 28), round(w / 28)) for _, h, w in SIZES]
    items = tuple(EncoderItem(t * h * w, t, 4 * h * w) for (t, _, _), (h, w) in zip(SIZES, sides, strict=True))
    yield from start(folder, CHATML, items)


@pytest.fixture(scope="module")
def ernie(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("ernie45_vl")
    ernie45_vl.make(folder)
    patches = (1296, 1320, 1200, 1296)  # its processor makes small frames larger
    sizes = tuple((2 if t < 16 else 4, h, w) for t, h, w in SIZES)
    items = tuple(EncoderItem(t * n // 4, t, n) for (t, _, _), n in zip(sizes, patches, strict=True))
    prompt = "User: Video 1:<|VIDEO_START|><|video@placeholder|><|VIDEO_END|>{}\nAssistant: "
    yield from start(folder, prompt, items, sizes)


@pytest.fixture(params=["qwen3_vl", "onevision", "ernie"])
def live(request: pytest.FixtureRequest) -> Iterator[Live]:
    found: Live = request.getfixturevalue(request.param)
    yield found
    stub_graphs.remove(found.engine._engine)


def test_rows_and_answers_are_those_without_graphs(live: Live) -> None:
    expected, rows_expected = live.answers()
    manager = live.install()
    assert manager.supports_modality("video"), "with pruning upstream lists none"
    found, rows = live.answers()
    assert found == expected
    assert [r.shape for r in rows] == [r.shape for r in rows_expected]
    for a, b in zip(rows, rows_expected, strict=True):
        np.testing.assert_allclose(a.float().numpy(), b.float().numpy(), atol=0.05)
    graphs = live.report()["graphs"]
    assert graphs["hits"] + graphs["misses"] == len(SIZES) and graphs["overruns"] == 0
    assert graphs["hits"] >= 3
    asked = sum(item.tokens for item in live.items)
    assert graphs["used_tokens"] + graphs["missed_tokens"] == asked
    assert graphs["captured_tokens"] > graphs["used_tokens"] > 0
    assert graphs["padded_share"] == pytest.approx(1 - graphs["used_tokens"] / graphs["captured_tokens"])
    assert graphs["encoder_s"] > 0


def test_kept_tokens_are_counted(qwen3_vl: Live) -> None:
    qwen3_vl.engine._engine.collective_rpc("vidpipe_encoder_reset")
    qwen3_vl.answers()
    asked = sum(item.tokens for item in QWEN_ITEMS)
    assert qwen3_vl.report()["pruning"] == {"unpruned_tokens": asked, "kept_tokens": asked // 2}


def test_what_was_not_planned_runs_without_a_graph(qwen3_vl: Live) -> None:
    """A batch that the captured borders or the baked longest sequence do not take: upstream raises, or is wrong."""
    manager = qwen3_vl.install()
    budget = manager.token_budgets[-1]
    wide = manager.model.sample_inputs(EncoderItem(budget - 6, 1, 4 * (budget - 6)))
    many = manager.model.sample_inputs(EncoderItem(budget, budget, 4))
    for inputs in (wide, many):
        tokens = sum(item.tokens for item in manager.model.encoder_items(inputs))
        assert len(manager._run_budget_graph(inputs, budget)) == tokens, "rows of exactly the items: no graph"
    graphs = qwen3_vl.report()["graphs"]
    assert graphs["overruns"] == graphs["misses"] == 2 and graphs["hits"] == 0
    stub_graphs.remove(qwen3_vl.engine._engine)


def test_a_measurement_divides_calls(qwen3_vl: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs that are measured slower than none are not replayed."""
    monkeypatch.setattr(graph_timing, "ROUNDS", 1)
    llm = qwen3_vl.engine._engine
    qwen3_vl.install()
    wanted = qwen3_vl.engine._demands.graphs
    assert wanted is not None
    timings = vllm_graphs.settle(llm, WantedGraphs(wanted.graphs, always=False))
    assert timings is not None
    assert [tokens for tokens, _ in timings["replay"]] == [graph.tokens for graph in wanted.graphs.graphs]
    assert all(seconds > 0 for _, seconds in timings["replay"] + timings["eager"])
    for slow, hits in ((1e3, 0), (1e-9, len(SIZES))):
        told = {**timings, "replay": [[tokens, slow] for tokens, _ in timings["replay"]]}
        llm.collective_rpc("vidpipe_encoder_costs", args=(told,))
        llm.collective_rpc("vidpipe_encoder_reset")
        qwen3_vl.answers()
        assert qwen3_vl.report()["graphs"]["hits"] == hits
    stub_graphs.remove(llm)
