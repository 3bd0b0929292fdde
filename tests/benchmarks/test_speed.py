"""Means over the rows of a results file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from vidpipe.benchmarks.speed import read_speed


def test_rows_that_were_refused_count_neither_as_asked_nor_as_kept(tmp_path: Path) -> None:
    tokens = [{"asked": 100, "kept": 50}, {"asked": 300, "kept": 250}, {"asked": 9000, "kept": None}, None]
    pq.write_table(
        pa.table({"vision_tokens": tokens, "tokens_in": [120, 320, None, None]}), tmp_path / "results.parquet"
    )
    speed = read_speed(tmp_path / "results.parquet")
    assert (speed.vision_asked, speed.vision_kept) == (200.0, 150.0)
    assert speed.tokens_in == 220.0 and speed.tokens_out is None
