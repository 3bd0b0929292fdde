"""How near vidpipe comes to an engine that is never kept waiting, and how far it is from a plain loop.

    python tests/perf/feed.py [--small] [--fresh] [--model FOLDER] [--arms A,B,B2,D] [--repeats N] [--folder FOLDER]

Arms, one process each: A inputs decoded and prepared beforehand, grouped by clip (the
ceiling); B `LLM.chat` over a sample of the rows, grouped; B2 the same, shuffled; D vidpipe
on all rows, shuffled; P decoding alone, on all cores. Same frames and prompts: the token ids of rows
that two arms have in common are compared. Without `--model`: the shape of Qwen3-VL-2B with dummy
weights, for a GPU; with `--small` the tiny model of the demo, for 2 cores. `--fresh` asks one
question a clip. Finished arms are kept in `--folder`: the same command goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import qwen3_vl_2b
from feed_workload import FULL, SMALL, make

TINY_MODEL = Path(__file__).resolve().parents[2] / "data" / "tiny-qwen3vl"
ARMS = Path(__file__).with_name("feed_arms.py")
COLUMNS = (
    ("rows", "rows", "{:.0f}"),
    ("rows/s", "rows_per_s", "{:.2f}"),
    ("start-up s", "startup_s", "{:.1f}"),
    ("first row s", "first_row_s", "{:.2f}"),
    ("measured s", "took_s", "{:.1f}"),
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
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        began_s = time.monotonic()
        size = SMALL if options.small else FULL
        make(folder, replace(size, questions=1, sample_clips=size.clips) if options.fresh else size, options.repeats)
        print(f"the workload took {time.monotonic() - began_s:.0f} s", file=sys.stderr)
        settings = {
            "model": str(options.model or (TINY_MODEL if options.small else qwen3_vl_2b.make(folder / "model"))),
            "max_tokens": 8,
            "engine_args": {
                "max_model_len": 4096 if options.small else 16384,
                **({} if options.small or options.model else {"load_format": "dummy"}),
                **json.loads(options.engine_args),
            },
            "feed": json.loads(options.feed),
        }
        found = {arm: run_arm(arm, folder, settings) for arm in options.arms.split(",")}
    print_table(found)
    compare(found)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--arms", default="A,B,B2,D")
    parser.add_argument("--repeats", type=int, default=1, help="how often A and D get the workload")
    parser.add_argument("--folder", type=Path, help="where to keep clips, runs and figures")
    parser.add_argument("--engine-args", default="{}", help="JSON, to vLLM as they are")
    parser.add_argument("--feed", default="{}", help="JSON, the recipe's feed section")
    return parser.parse_args()


def run_arm(arm: str, folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """One arm in a process of its own, with a cache of its own: no arm knows a file that another one has read."""
    kept = folder / f"figures-{arm}.json"
    if not kept.exists():
        caches = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
        environment = {"VLLM_CACHE_ROOT": str(caches / "vllm"), **os.environ}  # compiled kernels are no secret
        environment["XDG_CACHE_HOME"] = str(folder / f"cache-{arm}")
        command = [sys.executable, str(ARMS), arm, str(folder), json.dumps(settings)]
        began_s = time.monotonic()
        with (folder / f"log-{arm}.txt").open("w") as log:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, text=True, check=False, env=environment)
        if done.returncode:
            sys.exit(f"arm {arm} failed:\n{(folder / f'log-{arm}.txt').read_text()[-4000:]}")
        kept.write_text(done.stdout.splitlines()[-1])
        print(f"arm {arm} took {time.monotonic() - began_s:.0f} s", file=sys.stderr)
    figures: dict[str, Any] = json.loads(kept.read_text())
    print(f"arm {arm}: {figures['rows_per_s']:.2f} rows/s", file=sys.stderr, flush=True)
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
        print(f"D: {found['D']['workers']} workers, at most {found['D']['peak_media_mib']:.0f} MiB of media in flight")
        for arm in found.keys() - {"D"}:
            print(f"D / {arm}: {found['D']['rows_per_s'] / found[arm]['rows_per_s']:.2f} times the rows/s")


def compare(found: dict[str, dict[str, Any]]) -> None:
    """Rows that D and another arm have in common: equal prompts, equal answers."""
    for arm in found.keys() - {"D", "P"} if "D" in found else ():
        ours, theirs = found["D"]["prompts"], found[arm]["prompts"]
        common = sorted(ours.keys() & theirs.keys())
        prompts = sum(ours[row][0] == theirs[row][0] for row in common)
        answers = sum(ours[row][1] == theirs[row][1] for row in common)
        print(f"D and {arm}: {len(common)} rows in common, {prompts} with equal prompt tokens, {answers} equal answers")


if __name__ == "__main__":
    main()
