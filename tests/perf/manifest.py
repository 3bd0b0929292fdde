"""Time and memory of `vidpipe check` on a manifest of a million rows: `python tests/perf/manifest.py`."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TINY_MODEL = Path(__file__).resolve().parents[2] / "data" / "tiny-qwen3vl"


def write_manifest(path: Path, rows: int) -> None:
    """Multiple-choice rows, ten a clip; a check looks whether the clips are there, not into them."""
    (path.parent / "clips").mkdir()
    for place in range(0, rows, 10):
        (path.parent / "clips" / f"{place // 10:06d}.mp4").write_bytes(b"-")
    with path.open("w") as file:
        for place in range(rows):
            row = {
                "id": f"q{place}",
                "video": f"clips/{place // 10:06d}.mp4",
                "question": f"What happens in part {place} of the video?",
                "options": ["left", "right", "up", "down"],
                "answer": "ABCD"[place % 4],
            }
            file.write(json.dumps(row) + "\n")


def main(rows: int) -> None:
    """Measure one call of the command line."""
    with tempfile.TemporaryDirectory() as folder:
        manifest = Path(folder) / "rows.jsonl"
        write_manifest(manifest, rows)
        command = [sys.executable, "-m", "vidpipe", "check", str(manifest), "--set", f"model.path={TINY_MODEL}"]
        started = time.monotonic()
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        elapsed_s = time.monotonic() - started
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = used.ru_utime + used.ru_stime
    print(f"{result.stdout.strip()}: {elapsed_s:.1f} s, CPU {cpu_s:.1f} s, at most {used.ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    main(parser.parse_args().rows)
