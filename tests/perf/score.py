"""How long `vidpipe score` takes for a million rows: `python tests/perf/score.py [ROWS]`; not collected by pytest."""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.conftest import vidpipe
from vidpipe.benchmarks.vsi import CHOICE_TYPES, NUMBER_TYPES
from vidpipe.record.schema import KIND_KEY

OPTIONS = json.dumps(["A. a", "B. b", "C. c", "D. d"])


def write_results(path: Path, rows: int) -> None:
    """Results of VSI-Bench's shape with random answers on 5000 clips."""
    choose = random.Random(0)
    types = [choose.choice((*NUMBER_TYPES, *CHOICE_TYPES)) for _ in range(rows)]
    letters = [kind in CHOICE_TYPES for kind in types]
    columns = {
        "id": [str(i) for i in range(rows)],
        "clip_id": [f"clip{i % 5000}" for i in range(rows)],
        "status": ["ok"] * rows,
        "text": [choose.choice("ABCD") if letter else f"{choose.uniform(0, 9):.2f}" for letter in letters],
        "question_type": types,
        "answer": [json.dumps(choose.choice("ABCD") if letter else str(choose.randint(1, 9))) for letter in letters],
        "options": [OPTIONS if letter else None for letter in letters],
        "categories": [json.dumps({"dataset": choose.choice("xyz")}) for _ in range(rows)],
    }
    kinds = {name: b"json" if name in ("answer", "options", "categories") else b"text" for name in columns}
    schema = pa.schema([pa.field(name, pa.string(), metadata={KIND_KEY: kind}) for name, kind in kinds.items()])
    pq.write_table(pa.table(list(columns.values()), schema=schema), path)


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.parquet"
        write_results(path, rows)
        started = time.monotonic()
        result = vidpipe("score", path, "--profile", "vsi.official")
        print(result.stdout.splitlines()[1])
        print(f"{rows} rows in {time.monotonic() - started:.1f} s")


if __name__ == "__main__":
    main()
