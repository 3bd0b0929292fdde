"""The demo as an array of two on one node, with the real vLLM (CPU build)."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.conftest import ROOT, vidpipe
from tests.slurm.cluster import ThrowAwaySlurm
from vidpipe.record.disk import read_mark

ROWS, RIGHT = 84, 82
"""Of the demo; 83 are right on one host, and other batches may tip one that is close."""


@pytest.mark.engine
def test_two_engines_on_one_node(slurm: ThrowAwaySlurm, tmp_path: Path) -> None:
    run_dir, template = tmp_path / "run", tmp_path / "own.j2"
    own = (ROOT / "vidpipe" / "cluster" / "array.sbatch.j2").read_text()
    note = 'echo "$SLURMD_NODENAME $CUDA_VISIBLE_DEVICES $VLLM_PORT" > "seen.$SLURM_ARRAY_TASK_ID"\nexec {{'
    template.write_text(own.replace("exec {{", note))
    asked = ("--tasks", 2, "--gpus-per-task", 1, "--sbatch", "nodelist=n1", "--template", template)
    submitted = vidpipe("slurm", "submit", ROOT / "recipes" / "demo.yaml", "-o", run_dir, *asked)
    assert submitted.returncode == 0, submitted.stderr
    array, merging = (line.split()[0] for line in submitted.stdout.splitlines()[:2])
    slurm.wait_until(lambda: slurm.state(merging) == "COMPLETED", "the merge", 300)
    assert slurm.state(array).split() == ["COMPLETED"] * 2
    seen = [(run_dir / f"seen.{task}").read_text().split() for task in range(2)]
    assert [node for node, _, _ in seen] == ["n1", "n1"]
    assert {gpu for _, gpu, _ in seen} == {"0", "1"} and len({port for _, _, port in seen}) == 2
    fed = [read_mark(path) for path in run_dir.glob("feed.*.json")]
    assert len(fed) == 2 and all(report and report["rows"] for report in fed), "each engine answered some"
    table = pq.read_table(run_dir / "results.parquet")
    assert len(set(table["id"].to_pylist())) == table.num_rows == ROWS
    assert set(table["status"].to_pylist()) == {"ok"}
    rights = map(json.loads, table["answer"].to_pylist())
    assert sum(text == right for text, right in zip(table["text"].to_pylist(), rights, strict=True)) >= RIGHT
