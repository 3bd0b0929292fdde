"""Small run directories, and rows for them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from vidpipe.record.disk import server_now_s
from vidpipe.record.lease import (
    Lease,
    take,
)
from vidpipe.record.row import FramesRecord, MediaRecord, OutputRow, ResolvedRecord, VisionTokens
from vidpipe.record.run_dir import RunDir
from vidpipe.record.shard_writer import ShardWriter
from vidpipe.record.shards import add_shards, read_shards, write_order

COLUMNS: dict[str, Any] = {"id": "text", "video": "text", "answer": "json", "frames": "json", "text": "text"}
LEASE_S = 60.0


def row(row_id: str, **values: object) -> OutputRow:
    fields = {
        "id": row_id,
        "clip_id": "a.mp4",
        "status": "ok",
        "text": f"text {row_id}",
        "media": MediaRecord("ok"),
        "frames": FramesRecord(2, [0, 5], [0.0, 0.5], [64, 48], "abc"),
        "vision_tokens": VisionTokens(128, 128),
        "resolved": ResolvedRecord("s1", "m", "fake 1", "0"),
        "manifest": {"id": row_id, "video": "a.mp4", "answer": row_id},
    }
    return OutputRow(**{**fields, **values})  # type: ignore[arg-type]


def make_run(path: Path, shards: Sequence[Sequence[str]], columns: dict[str, Any] | None = None) -> RunDir:
    run_dir = RunDir(path)
    run_dir.create()
    manifest = {"rows": sum(map(len, shards)), "columns": columns or COLUMNS}
    run_dir.write_run(
        {"manifest": manifest, "recipe": {}, "lease_s": LEASE_S, "started": "2026-01-01T00:00:00+00:00"}, ""
    )
    if shards:
        hashed = [[(row_id, "sha") for row_id in shard] for shard in shards]
        add_shards(run_dir, hashed, [9] * len(shards), read_shards(run_dir))
    write_order(run_dir, [row_id for shard in shards for row_id in shard])
    return run_dir


def claim(run_dir: RunDir, shard: int) -> Lease | None:
    latest = run_dir.latest_attempts().get(shard, 0)
    return take(run_dir, shard, latest, server_now_s(run_dir.claims), LEASE_S)


def writer_for(run_dir: RunDir, shard: int = 0, columns: dict[str, Any] | None = None) -> ShardWriter:
    lease = claim(run_dir, shard)
    assert lease is not None
    return ShardWriter(lease, read_shards(run_dir).ids[shard], columns or COLUMNS, {}, sync_s=5)


def ids_of(path: Path) -> list[str]:
    return pq.read_table(path)["id"].to_pylist()
