"""How many worker processes a run has, and how they share the host with its engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from vidpipe.engine.interface import Capabilities
from vidpipe.job import decoders
from vidpipe.job.budget import ByteBudget
from vidpipe.job.decoders import Decoders, local_decoders
from vidpipe.job.prepare import ClipReader
from vidpipe.job.prospect import look_ahead
from vidpipe.recipe.load import load_recipe
from vidpipe.video.pool import KEPT_BYTES

GIB = 2**30


@pytest.fixture
def reader(make_run: Callable[..., Path]) -> ClipReader:
    return look_ahead(load_recipe(make_run(), [])).reader


@pytest.mark.parametrize(("workers", "clips"), [(1, 2), (3, 4), (4, 5), (8, 10), (16, 20)])
def test_some_clips_more_than_workers_are_read(reader: ClipReader, workers: int, clips: int) -> None:
    with Decoders(reader, workers, ByteBudget(GIB), make_pool=Mock()) as made:
        assert made.clips == clips


@pytest.mark.parametrize(
    ("on_gpu", "memory", "workers", "most", "asked"),
    [
        (True, 64 * GIB, 15, 16, {"kept_bytes": KEPT_BYTES, "niceness": 5}),
        (True, GIB, 15, 16, {"kept_bytes": GIB // 4 // 16, "niceness": 5}),
        (False, GIB, 8, 15, {"kept_bytes": GIB // 4 // 15, "niceness": 0}),
    ],
)
def test_workers_give_way_to_an_engine_on_a_gpu_and_share_a_part_of_the_budget(
    reader: ClipReader,
    on_gpu: bool,
    memory: int,
    workers: int,
    most: int,
    asked: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = Mock()
    monkeypatch.setattr(decoders, "ClipPool", pool)
    monkeypatch.setattr(decoders, "cores", lambda: 16)
    with local_decoders(reader, Capabilities(prepare_in_workers=on_gpu), ByteBudget(memory), None) as made:
        pool.assert_called_once_with(workers, **asked)
        for _ in range(20):
            made.add_worker()
        assert made.workers == most
