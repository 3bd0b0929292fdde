"""How near vidpipe comes to an engine that is never kept waiting, and how far it is from a plain loop.

    python tests/perf/feed.py [--small] [--model FOLDER] [--only A,B,D,D1,P] [--repeats N] [--folder FOLDER]

Arms: A inputs decoded and prepared beforehand, grouped by clip (the ceiling); B `LLM.chat` over a
sample of the rows, grouped; B2 the same, shuffled; D vidpipe on all rows, shuffled. A1, B1 and D1: one
question a clip; P: decoding of those clips alone, on all cores. Same frames and prompts: the token ids of rows
that two arms have in common are compared. Without `--model`: the shape of Qwen3-VL-2B with dummy weights, for a GPU;
with `--small` the tiny model of the demo, for 2 cores. Finished arms are kept in `--folder`: the same command goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import qwen3_vl_2b
from feed_arms import MARK
from feed_workload import FULL, SMALL, make

TINY_MODEL = Path(__file__).resolve().parents[2] / "data" / "tiny-qwen3vl"
ARMS = Path(__file__).with_name("feed_arms.py")
ARMS_OF = {"A": ("A", "A1"), "B": ("B", "B2", "B1"), "D": ("D",), "D1": ("D1",), "P": ("P",)}
COMPARED = {"D": ("A", "B", "B2"), "D1": ("A1", "B1", "P")}
COLUMNS = (
    ("rows", "rows", "{:.0f}"),
    ("rows/s", "rows_per_s", "{:.2f}"),
    ("start-up s", "startup_s", "{:.1f}"),
    ("first row s", "first_row_s", "{:.2f}"),
    ("measured s", "took_s", "{:.1f}"),
    ("decode core-s/clip", "decode_core_s_per_clip", "{:.2f}"),
    ("decode s/clip", "decode_s_per_clip", "{:.2f}"),
    ("prepare s/clip", "prepare_s_per_clip", "{:.3f}"),
    ("CPU s", "cpu_s", "{:.0f}"),
    ("peak RSS MiB", "peak_rss_mib", "{:.0f}"),
    ("largest child MiB", "worker_rss_mib", "{:.0f}"),
    ("prefix hits", "prefix_hits", "{:.2f}"),
)


def main() -> None:
    """Make the workload, run the arms, print the table."""
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        began_s = time.monotonic()
        make(folder, SMALL if options.small else FULL, options.repeats)
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
        found: dict[str, dict[str, Any]] = {}
        for process in options.only.split(","):
            found |= run_arms(process, folder, settings)
    print_table(found)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--only", default="A,B,D,D1,P", help="A brings A1, B brings B2 and B1")
    parser.add_argument(
        "--repeats", type=int, default=1, help="how often A and D get the workload; A1 and D1 three times that"
    )
    parser.add_argument("--folder", type=Path, help="where to keep clips, runs and figures")
    parser.add_argument("--engine-args", default="{}", help="JSON, to vLLM as they are")
    parser.add_argument("--feed", default="{}", help="JSON, the recipe's feed section")
    return parser.parse_args()


def run_arms(process: str, folder: Path, settings: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Arms that share a process, with a cache of its own: no arm knows a file that another one has read."""
    kept = folder / f"figures-{process}.json"
    found: dict[str, dict[str, Any]] = json.loads(kept.read_text()) if kept.exists() else {}
    if all(arm in found for arm in ARMS_OF[process]):
        return found
    caches = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    environment = {"VLLM_CACHE_ROOT": str(caches / "vllm"), **os.environ}  # compiled kernels are no secret
    environment["XDG_CACHE_HOME"] = str(folder / f"cache-{process}")
    command = [sys.executable, str(ARMS), process, str(folder), json.dumps(settings)]
    began_s, log = time.monotonic(), folder / f"log-{process}.txt"
    with log.open("w") as file:
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=file, text=True, env=environment)
        assert running.stdout is not None
        try:
            for line in running.stdout:
                if not line.startswith(MARK):
                    file.write(line)
                    continue
                new: dict[str, dict[str, Any]] = json.loads(line.removeprefix(MARK))
                found |= new
                kept.write_text(json.dumps(found))
                for arm, figures in new.items():
                    seconds = f"after {time.monotonic() - began_s:.0f} s"
                    print(f"arm {arm}: {figures['rows_per_s']:.2f} rows/s, {seconds}", file=sys.stderr, flush=True)
        finally:
            if running.poll() is None and sys.exc_info()[0] is not None:
                running.terminate()  # or it would go on beside the next arm
    if running.wait():
        sys.exit(f"arm {process} failed:\n{log.read_text()[-4000:]}")
    return found


def print_table(found: dict[str, dict[str, Any]]) -> None:
    """The figures, and why D's engine was idle."""
    print("| arm | " + " | ".join(title for title, _, _ in COLUMNS) + " |")
    print("|---" * (len(COLUMNS) + 1) + "|")
    for arm, figures in found.items():
        cells = ["" if figures.get(key) is None else shape.format(figures[key]) for _, key, shape in COLUMNS]
        print(f"| {arm} | " + " | ".join(cells) + " |")
    for ours, others in COMPARED.items():
        if ours not in found:
            continue
        mine = found[ours]
        idle = ", ".join(f"{cause} {seconds:.1f}" for cause, seconds in mine["idle_s"].items())
        print(f"\n{ours}: engine without work, seconds by cause: {idle}; statuses {mine['statuses']}")
        print(f"{ours}: {mine['workers']} workers, at most {mine['peak_media_mib']:.0f} MiB of media in flight")
        for other in found.keys() & set(others):
            print(f"{ours} / {other}: {mine['rows_per_s'] / found[other]['rows_per_s']:.2f} times the rows/s")
            if "prompts" in found[other]:
                compare(ours, mine["prompts"], other, found[other]["prompts"])


def compare(ours: str, mine: dict[str, Any], other: str, theirs: dict[str, Any]) -> None:
    """Rows that two arms have in common: equal prompts, equal answers."""
    common = sorted(mine.keys() & theirs.keys())
    prompts = sum(mine[row][0] == theirs[row][0] for row in common)
    answers = sum(mine[row][1] == theirs[row][1] for row in common)
    print(
        f"{ours} and {other}: {len(common)} rows in common, {prompts} with equal prompts, {answers} with equal answers"
    )


if __name__ == "__main__":
    main()
