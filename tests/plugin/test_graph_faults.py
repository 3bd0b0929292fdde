"""Faults of vLLM's encoder graphs, each on upstream's own functions, and the same made right."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from vidpipe.engine import torchvision_on_cpu, vllm_environment
from vidpipe.errors import EngineError

try:
    vllm_environment.installed()
except EngineError:
    pytest.skip("vLLM is not installed here", allow_module_level=True)
torchvision_on_cpu.install()

from vidpipe.engine.vllm_plugin import graph_buffers, graph_faults  # noqa: E402
from vidpipe.plan.graph_packing import EncoderItem, Graph, Graphs, pack  # noqa: E402
from vidpipe.plan.graph_proposal import token_costs  # noqa: E402


def test_packer_overrun() -> None:
    assert graph_faults.packer_overrun()
    graphs = Graphs((Graph(64, 8, 4),), 8, 4096)
    assert pack([EncoderItem(17, 17, 4)], graphs, token_costs([64], always=True))[0].graph is None


@pytest.mark.parametrize("tokens", [1, 63, 64, 300, 700, 3000])
def test_padded_capture_grid(tokens: int) -> None:
    assert graph_faults.padded_capture_grid()
    assert sum(t * h * w for t, h, w in graph_buffers.capture_grid(tokens, 2)) == 4 * tokens


def test_no_graphs_with_pruning() -> None:
    """The repair is shown in `test_live_graphs.py`, where the engine's model is asked."""
    assert graph_faults.no_graphs_with_pruning()


def test_no_graphs_for_llava_onevision2() -> None:
    assert graph_faults.no_graphs_for_llava_onevision2()
    from vllm.model_executor.models.interfaces import supports_encoder_cudagraph

    from vidpipe.engine.vllm_plugin.graphed_llava_onevision2 import GraphedLlavaOnevision2

    assert supports_encoder_cudagraph(object.__new__(GraphedLlavaOnevision2))


def test_ernie_resampled_twice() -> None:
    assert graph_faults.ernie_resampled_twice()
    from vidpipe.engine.vllm_plugin.graphed_ernie45_vl import GraphedErnie45VL

    calls: list[int] = []

    def resample(rows: Any, grid: Any) -> Any:
        calls.append(len(rows))
        return rows[::4]

    model = object.__new__(GraphedErnie45VL)
    tower = SimpleNamespace(dtype=torch.float32, spatial_merge_size=2)
    for name, value in {
        "vision_model": tower,
        "resampler_model": resample,
        "_vision_forward": lambda pixel_values, grid_thw: pixel_values,
    }.items():
        object.__setattr__(model, name, value)
    kwargs = {"pixel_values": torch.zeros(64, 1), "image_grid_thw": torch.tensor([[1, 8, 8]])}
    found: dict[int, Any] = {}
    rows = model.encoder_eager_forward(kwargs)
    model.postprocess_encoder_output({"default": rows}, [0], [16], found, batch_mm_kwargs=kwargs)
    assert calls == [64] and len(found[0]) == 16


def test_borders_that_are_left_over_are_empty_sequences() -> None:
    """Upstream leaves zeros behind the borders of images, which are sequences of negative length."""
    buffer = torch.full((6,), 99)
    graph_buffers.fill_borders(buffer, torch.tensor([0, 4, 9]))
    assert buffer.tolist() == [0, 4, 9, 9, 9, 9]
    graph_buffers.fill_borders(buffer, torch.tensor([0, 1, 2, 3, 4, 5]))
    assert buffer.tolist() == [0, 1, 2, 3, 4, 5]


def test_rows_are_copied_and_nothing_is_cleared() -> None:
    buffer = torch.full((4, 2), 7.0)
    graph_buffers.fill_rows(buffer, torch.ones(3, 2))
    assert buffer.tolist() == [[1, 1]] * 3 + [[7, 7]]


def test_captured_borders_stay_within_rows_and_the_longest_sequence() -> None:
    borders = graph_buffers.capture_borders(Graph(100, 9, 64), 2, "cpu")
    assert len(borders) == 10 and borders[-1] == 400
    assert int((borders[1:] - borders[:-1]).max()) == 64
