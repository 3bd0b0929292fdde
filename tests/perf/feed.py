"""How near vidpipe comes to an engine that is never kept waiting, and how far it is from a plain loop.

    python tests/perf/feed.py [--small] [--model FOLDER] [--arms A,B,B2,D] [--repeats N] [--folder FOLDER]

Arms, one process each: A inputs decoded and prepared beforehand, grouped by clip (the
ceiling); B `LLM.chat` over a sample of the rows, grouped; B2 the same, shuffled; D vidpipe
on all rows, shuffled. Same frames and prompts: the token ids of rows that two arms have in
common are compared. `--small` is for 2 cores and the tiny model of the demo; without it
`--model` names a folder, for example one with the shape of Qwen3-VL-2B and
`--engine-args '{"load_format": "dummy"}'`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from feed_workload import FULL, SMALL, make

TINY_MODEL = Path(__file__).resolve().parents[2] / "data" / "tiny-qwen3vl"
ARMS = Path(__file__).with_name("feed_arms.py")
COLUMNS = (
    ("rows", "rows", "{:.0f}"),
    ("rows/s", "rows_per_s", "{:.2f}"),
    ("start-up s", "startup_s", "{:.1f}"),
    ("first row s", "first_row_s", "{:.2f}"),
    ("decode core-s/clip", "decode_s_per_clip", "{:.2f}"),
    ("prepare s/clip", "prepare_s_per_clip", "{:.3f}"),
    ("CPU s", "cpu_s", "{:.0f}"),
    ("peak RSS MiB", "peak_rss_mib", "{:.0f}"),
    ("largest child MiB", "worker_rss_mib", "{:.0f}"),
    ("prefix hits", "prefix_hits", "{:.2f}"),
)


def main() -> None:
    """Make the workload, run the arms, print the table."""
    options = parse()
    size = SMALL if options.small else FULL
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        make(folder, size, options.repeats)
        settings = {
            "model": str(options.model or TINY_MODEL),
            "max_tokens": 8,
            "engine_args": {"max_model_len": 4096 if options.small else 16384, **json.loads(options.engine_args)},
            "feed": json.loads(options.feed),
        }
        found = {arm: run_arm(arm, folder, settings) for arm in options.arms.split(",")}
    print_table(found)
    compare(found)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--arms", default="A,B,B2,D")
    parser.add_argument("--repeats", type=int, default=1, help="how often A and D get the workload")
    parser.add_argument("--folder", type=Path, help="where to keep clips and runs")
    parser.add_argument("--engine-args", default="{}", help="JSON, to vLLM as they are")
    parser.add_argument("--feed", default="{}", help="JSON, the recipe's feed section")
    options = parser.parse_args()
    if not options.small and options.model is None:
        parser.error("--model is needed without --small")
    return options


def run_arm(arm: str, folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """One arm in a process of its own."""
    command = [sys.executable, str(ARMS), arm, str(folder), json.dumps(settings)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"arm {arm} failed:\n{done.stderr[-4000:]}")
    print(f"arm {arm} is done", file=sys.stderr)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def print_table(found: dict[str, dict[str, Any]]) -> None:
    """The figures, and why D's engine was idle."""
    print("| arm | " + " | ".join(title for title, _, _ in COLUMNS) + " |")
    print("|---" * (len(COLUMNS) + 1) + "|")
    for arm, figures in found.items():
        cells = ["" if figures.get(key) is None else shape.format(figures[key]) for _, key, shape in COLUMNS]
        print(f"| {arm} | " + " | ".join(cells) + " |")
    if "D" in found:
        idle = ", ".join(f"{cause} {seconds:.1f}" for cause, seconds in found["D"]["idle_s"].items())
        print(f"\nD: engine without work, seconds by cause: {idle}; statuses {found['D']['statuses']}")
        for arm in found.keys() - {"D"}:
            print(f"D / {arm}: {found['D']['rows_per_s'] / found[arm]['rows_per_s']:.2f} times the rows/s")


def compare(found: dict[str, dict[str, Any]]) -> None:
    """Rows that D and another arm have in common: equal prompts, equal answers."""
    for arm in found.keys() - {"D"} if "D" in found else ():
        ours, theirs = found["D"]["prompts"], found[arm]["prompts"]
        common = sorted(ours.keys() & theirs.keys())
        prompts = sum(ours[row][0] == theirs[row][0] for row in common)
        answers = sum(ours[row][1] == theirs[row][1] for row in common)
        print(f"D and {arm}: {len(common)} rows in common, {prompts} with equal prompt tokens, {answers} equal answers")


if __name__ == "__main__":
    main()
