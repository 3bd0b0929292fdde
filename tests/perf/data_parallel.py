"""What `engine.data_parallel` brings on this host: the demo's rows, many times, for one engine and for more.

    python tests/perf/data_parallel.py [--engines 1 2] [--repeats 10 | --recipe FILE] [--set KEY=VALUE ...]

Every repeat begins 0.05 s later in the clips, so that nothing is cached. Rows/s are counted from the moment when all
engines have started. On a GPU host the demo is too small: `feed.py --folder FOLDER --only D` leaves a workload with the
recipe `FOLDER/recipe-rows.jsonl.yaml`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "data" / "demo" / "rows.jsonl"
LATER_S = 0.05


def make(folder: Path, repeats: int) -> Path:
    """A recipe as the demo's, on so many times its rows."""
    rows = [json.loads(line) for line in DEMO.read_text().splitlines()]
    with (folder / "rows.jsonl").open("w") as manifest:
        for again in range(repeats):
            for row in rows:
                values = {**row, "id": f"{again}-{row['id']}", "clip_start": again * LATER_S}
                manifest.write(json.dumps({**values, "video": str(DEMO.parent / row["video"])}) + "\n")
    recipe = yaml.safe_load((ROOT / "recipes" / "demo.yaml").read_text())
    recipe |= {"manifest": "rows.jsonl", "model": {"path": str(ROOT / "data" / "tiny-qwen3vl")}}
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(recipe))
    return path


def measure(recipe: Path, engines: int, settings: list[str]) -> dict[str, Any]:
    """Run the recipe; what its feed reports."""
    run_dir = recipe.parent / f"run-{engines}"
    words = [word for setting in (f"engine.data_parallel={engines}", *settings) for word in ("--set", setting)]
    command = [sys.executable, "-m", "vidpipe", "run", str(recipe), "-o", str(run_dir), "--fresh", *words]
    before = os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    (report,) = run_dir.glob("feed.*.json")
    found: dict[str, Any] = json.loads(report.read_text())
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return found | {"cpu_s": cpu_s}


def main() -> None:
    """Print a line for each number of engines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engines", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--recipe", type=Path, help="to run in place of the demo's rows")
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="KEY=VALUE")
    options = parser.parse_args()
    first = None
    with tempfile.TemporaryDirectory() as folder:
        recipe = options.recipe or make(Path(folder), options.repeats)
        for engines in options.engines:
            found = measure(recipe, engines, options.settings)
            took_s = found["wall_s"] - found["idle_s"]["start"]
            rate = found["rows"] / took_s
            first = first or rate
            waits = ", ".join(f"{cause} {s:.1f}" for cause, s in found["idle_s"].items() if s >= 0.05)
            said = f"{found['rows']} rows, {took_s:.1f} s, {rate:.2f} rows/s ({rate / first:.2f} times)"
            load = f"{found['cpu_s']:.0f} CPU s, load {os.getloadavg()[0]:.1f}"
            print(f"{engines} engines: {said}, {load}; idle: {waits}", flush=True)


if __name__ == "__main__":
    main()
