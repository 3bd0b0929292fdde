"""`vidpipe plan` over many clips: wall and CPU seconds with headers read, from the cache, and without a cache.

Run: python -m tests.perf.plan [--clips 10000] [--folder /tmp/plan]. The clips are copies of the demo's twelve, each a
file of its own, so that every header is read.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import tempfile
import time
from pathlib import Path

from tests.conftest import ROOT, TINY_MODEL, vidpipe

DEMO = ROOT / "data" / "demo"


def write_job(folder: Path, clips: int) -> Path:
    """Clips, a manifest of one question each, and a recipe."""
    sources = sorted(DEMO.glob("*.mp4"))
    (folder / "clips").mkdir(parents=True, exist_ok=True)
    for number in range(clips):
        path = folder / "clips" / f"{number}.mp4"
        if not path.exists():
            shutil.copyfile(sources[number % len(sources)], path)
    rows = ({"id": str(n), "video": f"clips/{n}.mp4", "question": "What appears first?"} for n in range(clips))
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    recipe = {"manifest": "rows.jsonl", "model": {"path": str(TINY_MODEL)}, "sampling": {"fps": 2}}
    (folder / "recipe.yaml").write_text(json.dumps(recipe))
    return folder / "recipe.yaml"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clips", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/plan"))
    options = parser.parse_args()
    recipe = write_job(options.folder, options.clips)
    time.sleep(2.5)  # files that have just changed are not kept
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        for name, off in (("first", "0"), ("second", "0"), ("no cache", "1")):
            os.environ["VIDPIPE_NO_CACHE"] = off
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
            done = vidpipe("plan", recipe, timeout_s=3600)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            assert done.returncode == 0, done.stderr
            cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            load = os.getloadavg()[0]
            print(f"{name}: {time.monotonic() - began:.1f} s wall, {cpu_s:.1f} s CPU, load {load:.1f}", flush=True)
        print(f"{sum(file.stat().st_size for file in Path(cache).rglob('headers*'))} bytes of headers")
    print(done.stdout)


if __name__ == "__main__":
    main()
