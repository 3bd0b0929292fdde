"""What one fresh clip costs a worker, stage by stage, and what a worker costs before its first clip.

    PYTHONPATH=. OMP_NUM_THREADS=1 python tests/perf/worker.py [--folder FOLDER] [--turns N]

CPU milliseconds of one core: four kinds of clips of `feed.py`, Qwen3-VL-2B's settings, decoded, prepared and handed
over as with `feed.prepare: workers`. No engine is started. The first lines are of a real worker, a mean of some turns;
the table is of this process, the least of some turns.
"""

from __future__ import annotations

import argparse
import functools
import os
import socket
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import qwen3_vl_2b
from feed_arms import prospect_of
from feed_workload import FULL, make

from vidpipe.engine.interface import Preparer
from vidpipe.engine.registry import make_engine
from vidpipe.job import prepare, show
from vidpipe.job.prepare import ClipReader
from vidpipe.job.work import read_and_prepare
from vidpipe.plan.clips import Clip
from vidpipe.video import channel, decode
from vidpipe.video.pixels import RgbWriter
from vidpipe.video.pool import ClipPool
from vidpipe.video.reader import PacketReader
from vidpipe.video.walk import Walker

KINDS = {
    "clip_04.mp4": "480p H.264",
    "clip_05.mp4": "1080p H.264",
    "clip_06.mp4": "480p HEVC",
    "clip_07.mp4": "1080p HEVC",
}
WARM_UP_LIMIT_S = 600


class Stages:
    """CPU seconds by stage; what a stage calls that is one itself counts there alone."""

    def __init__(self) -> None:
        self.took_s: defaultdict[str, float] = defaultdict(float)
        self._inner_s = [0.0]

    def time(self, owner: Any, name: str, stage: str) -> None:
        """Time a function or method of `owner` from now on."""
        setattr(owner, name, self.timed(getattr(owner, name), stage))

    def timed(self, function: Callable[..., Any], stage: str) -> Callable[..., Any]:
        """`function`, timed."""

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            self._inner_s.append(0.0)
            before_s = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                took_s = time.process_time() - before_s
                self.took_s[stage] += took_s - self._inner_s.pop()
                self._inner_s[-1] += took_s

        return run


def main() -> None:
    """Print a table, a column a kind, and the costs of a start."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where to keep the clips")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        make(folder, replace(FULL, clips=8), 1)
        settings = {
            "model": str(qwen3_vl_2b.make(folder / "model")),
            "max_tokens": 8,
            "engine_args": {"max_model_len": 16384, "load_format": "dummy"},
            "feed": {},
        }
        prospect = prospect_of(folder, settings, "fresh.jsonl")
        recipe = prospect.recipe
        preparer = make_engine(recipe.model, recipe.engine, prospect.checkpoint.location).preparer
        clips: dict[str, Clip] = {}
        for clip in prospect.plan(prospect.manifest.rows).clips:
            clips.setdefault(clip.first.row.media[0].name, clip)
        chosen = [clips[name] for name in KINDS]
        preparer.warm_up()  # what a worker sends cannot be unpacked before
        measure_worker(prospect.reader, preparer, chosen, options.turns)
        stages = all_stages(preparer)
        print_table([by_stage(stages, prospect.reader, preparer, clip, options.turns) for clip in chosen])


def measure_worker(reader: ClipReader, preparer: Preparer, clips: list[Clip], turns: int) -> None:
    """CPU milliseconds of a real worker until it is ready, and then for each clip, the mean of some turns."""
    with ClipPool(1) as pool:

        def run(function: Callable[..., Any], *args: Any) -> Any:
            first = preparer.warm_up if function is read_and_prepare else None
            return pool.submit(function, *args, name="job", time_limit_s=WARM_UP_LIMIT_S, first=first).result()

        started = run(os.times)
        print(f"a worker starts: {1000 * (started.user + started.system):.0f} CPU ms")
        run(read_and_prepare, reader, preparer, clips[0])
        ready = run(os.times)
        print(f"imports and prepares its first clip: {1000 * _between(started, ready):.0f} CPU ms")
        jobs: dict[str, tuple[Any, ...]] = {
            "decodes and prepares": (read_and_prepare, reader, preparer),
            "decodes": (reader.read,),
        }
        for what, job in jobs.items():
            took: list[str] = []
            for name, clip in zip(KINDS.values(), clips, strict=True):
                run(*job, clip)
                before = run(os.times)
                for _ in range(turns):
                    run(reader.look, clip)
                    run(*job, clip)
                after = run(os.times)
                ms = 1000 * _between(before, after) / turns
                took.append(f"{name} {ms:.0f} (kernel {1000 * (after.system - before.system) / turns:.0f})")
            print(f"{what} a clip, CPU ms: {', '.join(took)}")


def _between(before: os.times_result, after: os.times_result) -> float:
    return after.user + after.system - before.user - before.system


def by_stage(stages: Stages, reader: ClipReader, preparer: Preparer, clip: Clip, turns: int) -> dict[str, float]:
    """CPU seconds of the cheapest of some turns."""
    cv2.setNumThreads(1)
    ours, theirs = socket.socketpair()
    work = stages.timed(read_and_prepare, "rest")
    found: list[dict[str, float]] = []
    for _ in range(turns):
        stages.took_s.clear()
        reader.look(clip)
        made = work(reader, preparer, clip)
        receiver = threading.Thread(target=channel.receive, args=(theirs,))
        receiver.start()
        stages.timed(channel.send, "to the engine's process, both sides")(ours, made)
        receiver.join()
        found.append(dict(stages.took_s))
    return min(found, key=lambda took_s: sum(took_s.values()))


def all_stages(preparer: Any) -> Stages:
    """The stages, timed from now on; of a preparer that is ready."""
    from transformers.models.qwen3_vl.video_processing_qwen3_vl import Qwen3VLVideoProcessor

    stages = Stages()
    stages.time(ClipReader, "look", "look at the header")
    stages.time(prepare, "cached_timeline", "timeline, from the cache")
    for name in ("__init__", "_next", "_is_due"):
        stages.time(PacketReader, name, "open, demux, check packets")
    stages.time(Walker, "_decode_listening", "decode")
    stages.time(RgbWriter, "_convert", "YUV to BGR")
    stages.time(RgbWriter, "write", "BGR to RGB, in the clip's array")
    stages.time(prepare, "decode_frames", "rest of decoding")
    stages.time(decode, "flat_note", "rest of decoding")
    stages.time(show, "_sha", "SHA-256 of the pixels")
    stages.time(ClipReader, "read", "rest of decoding")
    stages.time(Qwen3VLVideoProcessor, "resize", "resize")
    stages.time(Qwen3VLVideoProcessor, "patchify", "patches")
    stages.time(preparer._renderer()._renderer, "render_cmpl", "rest of vLLM's rendering")
    return stages


def print_table(columns: list[dict[str, float]]) -> None:
    """A line a stage, the costliest first."""
    print("| CPU ms | " + " | ".join(KINDS.values()) + " |\n|---" + "|---:" * len(KINDS) + "|")
    for stage in sorted(columns[1], key=lambda stage: -columns[1][stage]):
        print(f"| {stage} | " + " | ".join(f"{1000 * column.get(stage, 0.0):.0f}" for column in columns) + " |")
    print("| all | " + " | ".join(f"{1000 * sum(column.values()):.0f}" for column in columns) + " |")


if __name__ == "__main__":
    main()
