"""What recording costs: rows through claim, journal, publish and merge, without engine or media.

    python tests/perf/record.py [ROWS]         # default 1,000,000

Each row records 32 frames. Prints microseconds a row by stage, the peak memory, and what of it is the search for
secrets (`vidpipe.redact`).
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

from vidpipe.plan.cost import cut, shard_count
from vidpipe.record import schema
from vidpipe.record.disk import server_now_s
from vidpipe.record.lease import take
from vidpipe.record.merge import merge
from vidpipe.record.row import FramesRecord, MediaRecord, OutputRow, ResolvedRecord, Seconds, VisionTokens
from vidpipe.record.run_dir import RunDir
from vidpipe.record.shard_writer import ShardWriter
from vidpipe.record.shards import add_shards, read_shards, write_order

ROWS_A_CLIP = 10
FRAMES = 32
COLUMNS: Any = {"id": "text", "video": "text", "question": "text", "answer": "json"}


def row(number: int, frames: FramesRecord) -> OutputRow:
    name = f"row-{number}"
    return OutputRow(
        id=name,
        clip_id=f"clip-{number // ROWS_A_CLIP}.mp4",
        status="ok",
        media=MediaRecord("ok"),
        prompt_sha="0" * 64,
        text="a short answer",
        finish_reason="stop",
        tokens_in=2000 + number % 100,
        tokens_out=3,
        frames=frames,
        vision_tokens=VisionTokens(1600, 1600),
        resolved=ResolvedRecord("0123456789abcdef", "model", "engine 1", "0"),
        seconds=Seconds(0.5, 0.01, 0.2, 1.5),
        manifest={"id": name, "video": f"clip-{number // ROWS_A_CLIP}.mp4", "question": "What?", "answer": "A"},
    )


def redaction_us(frames: FramesRecord, rows: int = 20_000, rounds: int = 5) -> tuple[float, float]:
    """Least CPU microseconds that a row takes as a line of the journal, with and without the search for secrets."""

    def measure() -> float:
        began = time.process_time()
        for number in range(rows):
            schema.to_json(made[number], COLUMNS)
        return (time.process_time() - began) / rows * 1e6

    made = [row(number, frames) for number in range(rows)]
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        found[0].append(measure())
        with patch.object(schema, "redact", lambda text: text):
            found[1].append(measure())
    return min(found[0]), min(found[1])


def main(rows: int) -> None:
    stages: dict[str, float] = {}
    frames = [
        FramesRecord(
            FRAMES, [30 * i for i in range(FRAMES)], [i + n / 1000 for i in range(FRAMES)], [448, 448], "0" * 64
        )
        for n in range(100)
    ]
    with tempfile.TemporaryDirectory() as folder:
        run_dir = RunDir(Path(folder) / "run")
        run_dir.create()
        run_dir.write_run({"manifest": {"rows": rows, "columns": COLUMNS}, "recipe": {}, "lease_s": 60.0}, "")
        began = time.perf_counter()
        stretches = cut([1] * (rows // ROWS_A_CLIP), shard_count(rows // ROWS_A_CLIP))
        shards = [[(f"row-{n}", "sha") for n in range(s.start * ROWS_A_CLIP, s.stop * ROWS_A_CLIP)] for s in stretches]
        add_shards(run_dir, shards, [len(shard) for shard in shards], read_shards(run_dir))
        write_order(run_dir, [row_id for shard in shards for row_id, _ in shard])
        del shards
        stored = read_shards(run_dir)
        stages["plan"] = time.perf_counter() - began
        stages["claim"] = stages["write"] = stages["publish"] = 0.0
        for shard, ids in stored.ids.items():
            began = time.perf_counter()
            latest = run_dir.latest_attempts().get(shard, 0)
            lease = take(run_dir, shard, latest, server_now_s(run_dir.claims), 60.0)
            assert lease is not None
            writer = ShardWriter(lease, ids, COLUMNS, {}, sync_s=5)
            claimed = time.perf_counter()
            for row_id in ids:
                number = int(row_id.removeprefix("row-"))
                made = row(number, frames[number // ROWS_A_CLIP % 100])
                writer.note_started(row_id)
                writer.append(made, {"sampling": {"fps": 2.0}})
                writer.tick()
            written = time.perf_counter()
            writer.publish()
            stages["claim"] += claimed - began
            stages["write"] += written - claimed
            stages["publish"] += time.perf_counter() - written
        began = time.perf_counter()
        merged = merge([run_dir.path], run_dir.results)
        stages["merge"] = time.perf_counter() - began
        assert merged.rows == len(stored.sha) and not merged.partial
        size = run_dir.results.stat().st_size
    for name, seconds in stages.items():
        print(f"{name:8} {seconds:8.1f} s  {seconds / rows * 1e6:7.1f} us a row")
    total = sum(stages.values())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{'all':8} {total:8.1f} s  {total / rows * 1e6:7.1f} us a row")
    print(f"{rows} rows, {FRAMES} frames each; peak memory {peak:.0f} MiB; result {size / rows:.0f} bytes a row")
    searched, plain = redaction_us(frames[0])
    print(f"a line of the journal: {searched:.1f} us of CPU with the search for secrets, {plain:.1f} without")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
