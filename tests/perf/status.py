"""`vidpipe status` on a run of many shards: seconds of the first look, of a second one, and of the whole command.

Run: python tests/perf/status.py [--shards 10000] [--rows 100] [--workers 64]. All shards but those of the workers are
done, one row in 50 failed; each worker holds two shards of which half is recorded.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.record.runs import COLUMNS, claim, make_run, row  # noqa: E402
from vidpipe.record.bulletin import write_bulletin  # noqa: E402
from vidpipe.record.disk import set_mark  # noqa: E402
from vidpipe.record.run_dir import RunDir  # noqa: E402
from vidpipe.record.shard_writer import ShardWriter  # noqa: E402
from vidpipe.record.status import StatusReader  # noqa: E402


def make(path: Path, shards: int, rows: int, workers: int) -> RunDir:
    run_dir = make_run(path, [[f"{shard}-{n}" for n in range(rows)] for shard in range(shards)])
    failed = rows // 50
    mark = {
        "part": "none",
        "rows": rows,
        "statuses": {"ok": rows - failed, "media_error": failed},
        "failures": {"not_found": [failed, "clip.mp4: no such file"]} if failed else {},
        "attempt": 1,
    }
    for shard in range(2 * workers, shards):
        set_mark(run_dir.done_file(shard), mark, durable=False)
        run_dir.claim_file(shard, 1).touch()
    for shard in range(2 * workers):
        lease = claim(run_dir, shard)
        assert lease is not None
        writer = ShardWriter(lease, [f"{shard}-{n}" for n in range(rows)], COLUMNS, {}, sync_s=5)
        for n in range(rows // 2):
            writer.append(row(f"{shard}-{n}"), {})
    write_bulletin(run_dir, {"recorded_here": rows, "rows_per_s_here": 3.0, "phase": "running"})
    return run_dir


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shards", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--workers", type=int, default=16)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run_dir = make(Path(folder) / "run", options.shards, options.rows, options.workers)
        reader = StatusReader(run_dir.path)
        for name in ("first look", "second look"):
            began = time.perf_counter()
            found = reader.read()
            print(f"{name}: {time.perf_counter() - began:.3f} s")
        print(f"{found.recorded} of {found.rows} rows, {found.shards_done} of {found.shards} shards")
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "vidpipe", "status", str(run_dir.path)], cwd=ROOT, check=True)
        print(f"the command: {time.perf_counter() - began:.3f} s")


if __name__ == "__main__":
    main()
