"""What one fresh clip costs a worker, stage by stage, and what a worker costs before its first clip.

    PYTHONPATH=. OMP_NUM_THREADS=1 python tests/perf/worker.py [--folder FOLDER] [--turns N]

CPU milliseconds of one core: four kinds of clips of `feed.py`, Qwen3-VL-2B's settings, decoded, prepared and handed
over as with `feed.prepare: workers`. No engine is started. The least of some turns; all in this process, but for the
last lines, which are of a real worker.
"""

from __future__ import annotations

import argparse
import functools
import os
import socket
import tempfile
import threading
import time
from collections import Counter
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
        self.took_s: Counter[str] = Counter()
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
        measure_start(prospect.reader, preparer, chosen[-1])
        stages = all_stages(preparer)
        print_table([by_stage(stages, prospect.reader, preparer, clip, options.turns) for clip in chosen])


def measure_start(reader: ClipReader, preparer: Preparer, clip: Clip) -> None:
    """CPU milliseconds of a real worker until it is ready, and for the jobs of its second clip."""
    with ClipPool(1) as pool:
        jobs: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
            ("starts", time.process_time, ()),
            ("imports and prepares its first clip", read_and_prepare, (reader, preparer, clip)),
            ("looks at a header", reader.look, (clip,)),
            ("decodes and prepares a clip (1080p HEVC)", read_and_prepare, (reader, preparer, clip)),
            ("decodes that clip only", reader.read, (clip,)),
        ]
        for what, function, args in jobs:
            first = preparer.warm_up if function is read_and_prepare else None
            before_s = pool.submit(time.process_time, name="clock", time_limit_s=60).result()
            pool.submit(function, *args, name="job", time_limit_s=WARM_UP_LIMIT_S, first=first).result()
            after_s = pool.submit(time.process_time, name="clock", time_limit_s=60).result()
            print(f"a worker {what}: {1000 * (after_s - (0.0 if what == 'starts' else before_s)):.0f} CPU ms")


def by_stage(stages: Stages, reader: ClipReader, preparer: Preparer, clip: Clip, turns: int) -> Counter[str]:
    """CPU seconds of the cheapest of some turns."""
    cv2.setNumThreads(1)
    ours, theirs = socket.socketpair()
    work = stages.timed(read_and_prepare, "rest")
    found: list[Counter[str]] = []
    for _ in range(turns):
        stages.took_s.clear()
        reader.look(clip)
        made = work(reader, preparer, clip)
        receiver = threading.Thread(target=channel.receive, args=(theirs,))
        receiver.start()
        stages.timed(channel.send, "to the engine's process, both sides")(ours, made)
        receiver.join()
        found.append(stages.took_s.copy())
    return min(found, key=Counter.total)


def all_stages(preparer: Any) -> Stages:
    """The stages, timed from now on; of a preparer that is ready."""
    from transformers.models.qwen3_vl.video_processing_qwen3_vl import Qwen3VLVideoProcessor

    stages = Stages()
    stages.time(ClipReader, "look", "look at the header")
    stages.time(prepare, "cached_timeline", "timeline, from the cache")
    for name in ("__init__", "_next", "_matches"):
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


def print_table(columns: list[Counter[str]]) -> None:
    """A line a stage, the costliest first."""
    print("| CPU ms | " + " | ".join(KINDS.values()) + " |\n|---" + "|---:" * len(KINDS) + "|")
    for stage in sorted(columns[1], key=lambda stage: -columns[1][stage]):
        print(f"| {stage} | " + " | ".join(f"{1000 * column[stage]:.0f}" for column in columns) + " |")
    print("| all | " + " | ".join(f"{1000 * column.total():.0f}" for column in columns) + " |")


if __name__ == "__main__":
    main()
