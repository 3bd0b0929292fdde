"""How long `vidpipe score` takes on a million rows of VSI-Bench's ten types: `python tests/perf/score.py`."""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from vidpipe.benchmarks.vsi import CHOICE_TYPES, NUMBER_TYPES
from vidpipe.record.schema import KIND_KEY
from vidpipe.record.shard_writer import RUN_KEY

TYPES = (*NUMBER_TYPES, *CHOICE_TYPES)
OPEN_TYPED = {"answer", "options", "categories"}


def write_results(path: Path, rows: int) -> None:
    """A results file as a run leaves it, with made-up replies."""
    made = random.Random(0)
    types = [TYPES[place % len(TYPES)] for place in range(rows)]
    columns = {
        "id": [str(place) for place in range(rows)],
        "text": [made.choice("ABCD") if kind in CHOICE_TYPES else f"{made.uniform(0, 20):.1f}" for kind in types],
        "status": ["ok"] * rows,
        "clip_id": [f"scene{place % 30_000}" for place in range(rows)],
        "answer": [json.dumps("A" if kind in CHOICE_TYPES else f"{made.uniform(1, 20):.1f}") for kind in types],
        "question_type": types,
        "options": [json.dumps(["A. x", "B. y"]) if kind in CHOICE_TYPES else None for kind in types],
        "question": [f"How far is object {place} from the door, in meters?" for place in range(rows)],
        "categories": [json.dumps({"dataset": ("scannet", "arkitscenes")[place % 2]}) for place in range(rows)],
    }
    fields = [
        pa.field(name, pa.string(), metadata={KIND_KEY: b"json"} if name in OPEN_TYPED else None) for name in columns
    ]
    run = json.dumps({"given": {"scorer": "vsi.official"}})
    pq.write_table(pa.table(columns, schema=pa.schema(fields, {RUN_KEY: run})), path)


def main() -> None:
    """Print wall seconds, CPU seconds and peak memory of the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.parquet"
        write_results(path, rows)
        began_s = time.perf_counter()
        subprocess.run([sys.executable, "-m", "vidpipe", "score", path], check=True)
        wall_s = time.perf_counter() - began_s
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s, peak_mib = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
    sys.stdout.write(f"{rows} rows: {wall_s:.1f} s, {cpu_s:.1f} CPU s, peak {peak_mib:.0f} MiB\n")


if __name__ == "__main__":
    main()
