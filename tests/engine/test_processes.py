"""Whole runs of the real vLLM, CPU build, with engines in processes of their own."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.conftest import ROOT, vidpipe

pytestmark = pytest.mark.engine

ROWS = 14
"""The demo's first two clips; its model answers all of them rightly."""


def answers_of(run_dir: Path, *settings: str) -> list[tuple[str, str]]:
    """Text and right answer of the demo's first rows."""
    words = [word for setting in settings for word in ("--set", setting)]
    demo = ROOT / "recipes" / "demo.yaml"
    done = vidpipe("run", demo, "-o", run_dir, "--limit", ROWS, *words, timeout_s=500)
    assert done.returncode == 0, done.stderr
    table = pq.read_table(run_dir / "results.parquet")
    rights = map(json.loads, table["answer"].to_pylist())  # a column of texts and others is kept as JSON
    return list(zip(table["text"].to_pylist(), rights, strict=True))


def test_two_engines_answer_as_one(tmp_path: Path) -> None:
    found = answers_of(tmp_path / "run", "engine.data_parallel=2", "engine.args.max_num_seqs=2")
    assert len(found) == ROWS and all(text == answer for text, answer in found)
    planned = vidpipe("plan", ROOT / "recipes" / "demo.yaml", "--like", tmp_path / "run", "--json")
    document = json.loads(planned.stdout)
    assert document["engine"]["seconds"] > 0 and len(document["predicted"]) == 84
    predicted = {row["id"]: row for row in document["predicted"]}
    for row in pq.read_table(tmp_path / "run" / "results.parquet").to_pylist():
        seen = (row["frames"]["count"], row["vision_tokens"]["asked"], row["tokens_in"])
        assert seen == tuple(predicted[row["id"]][key] for key in ("frames", "vision_tokens", "prompt_tokens"))


def test_a_core_process_that_keeps_media_answers_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "VLLM_ENABLE_V1_MULTIPROCESSING", "1")  # as with CUDA
    found = answers_of(tmp_path / "run", "engine.args.mm_processor_cache_gb=0.1")
    assert len(found) == ROWS and all(text == answer for text, answer in found)
