"""What pruning costs on the demo's 84 questions, through the command line: right answers and tokens, arm by arm.

Run: python -m tests.perf.pruning_demo [--least 79]. Prefix caching is on, as vLLM has it by default. Exits with 1
if a pruned arm has fewer right answers than that.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

from tests.conftest import ROOT, vidpipe

ARMS = {
    "unpruned": [],
    "evs 0.5": ["--set", "pruning={method: evs, rate: 0.5}"],
    "vidcom2 0.5": ["--set", "pruning={method: vidcom2, rate: 0.5}"],
    "evs 0.5, 64 tokens a step": [
        *("--set", "pruning={method: evs, rate: 0.5}"),
        *("--set", "engine.args={max_model_len: 4096, max_num_seqs: 16, max_num_batched_tokens: 64}"),
    ],
}


def measure(folder: Path, name: str, settings: list[str]) -> int:
    """Run one arm and print its line; the number of right answers."""
    run_dir = folder / name.replace(" ", "_")
    result = vidpipe("run", ROOT / "recipes" / "demo.yaml", "-o", run_dir, *settings, timeout_s=900)
    if result.returncode:
        sys.exit(f"{name}: exit code {result.returncode}\n{result.stderr}")
    rows = pq.read_table(run_dir / "results.parquet").to_pylist()
    right: int = sum(row["text"] == json.loads(row["answer"]) for row in rows)
    asked, kept = (sum(row["vision_tokens"][key] for row in rows) for key in ("asked", "kept"))
    prompt = sum(row["tokens_in"] for row in rows)
    print(f"{name:26} {right:2} of {len(rows)} right   {kept:6} of {asked:6} vision tokens   {prompt:6} prompt tokens")
    return right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--least", type=int, default=79)
    least = parser.parse_args().least
    with tempfile.TemporaryDirectory() as folder:
        right = {name: measure(Path(folder), name, settings) for name, settings in ARMS.items()}
    if min(count for name, count in right.items() if name != "unpruned") < least:
        sys.exit(f"fewer than {least} right")


if __name__ == "__main__":
    main()
