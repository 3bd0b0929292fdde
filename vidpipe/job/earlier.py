"""What an earlier run says about the speed of the next one."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from vidpipe.errors import RecipeError
from vidpipe.record.run_dir import FEED_FILES, RunDir


def seconds_per_token(folder: Path) -> float:
    """Seconds that the engines of a finished run were at work, for each token of its prompts.

    Raises:
        RecipeError: it is no finished run, or has not noted how busy its engines were.
    """
    results = RunDir(folder).results
    reports = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob(FEED_FILES))]
    if not results.exists() or not reports:
        raise RecipeError(f"--like {folder}: not a finished run. Type the -o of a vidpipe run that has ended.")
    busy_s = sum(report["wall_s"] - sum(report["idle_s"].values()) for report in reports)
    tokens = pc.sum(pq.read_table(results, columns=["tokens_in"])["tokens_in"]).as_py()
    if not tokens or busy_s <= 0:
        raise RecipeError(f"--like {folder}: none of its rows was answered, so it tells no speed.")
    return float(busy_s / tokens)
