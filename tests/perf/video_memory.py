"""Memory of the pool over many clips: parent and children, and what is in /dev/shm afterwards.

python tests/perf/video_memory.py [--clips 2000] [--workers 2]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections import deque
from concurrent.futures import Future
from pathlib import Path

import av
import numpy as np

from vidpipe.video.decode import Frames, decode_frames
from vidpipe.video.pool import ClipPool

IN_FLIGHT = 8
SHARED = Path("/dev/shm")


def make_clip(path: Path) -> None:
    """Three seconds of 320 x 240 noise, H.264."""
    rng = np.random.default_rng(0)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=10, options={"preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
        for _ in range(30):
            picture = rng.integers(0, 256, (240, 320, 3), np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())


def resident_mib() -> float:
    """Resident memory of this process and its children, MiB."""
    pids = [
        os.getpid(),
        *(int(p) for p in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()),
    ]
    pids += [int(p) for t in Path("/proc/self/task").iterdir() for p in (t / "children").read_text().split()]
    pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in set(pids)]
    return sum(pages) * os.sysconf("SC_PAGESIZE") / 2**20


def main() -> None:
    """Print resident memory after each tenth of the clips."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    before = set(SHARED.iterdir())
    with tempfile.TemporaryDirectory() as folder, ClipPool(options.workers) as pool:
        clip = Path(folder) / "clip.mp4"
        make_clip(clip)
        tenth = options.clips // 10
        measured = []
        for step in range(10):
            waiting: deque[Future[Frames]] = deque()
            for _ in range(tenth):
                waiting.append(pool.submit(decode_frames, clip, [3, 9, 20], name="clip", time_limit_s=60))
                if len(waiting) == IN_FLIGHT:
                    assert waiting.popleft().result().pixels.any()
            while waiting:
                assert waiting.popleft().result().pixels.any()
            time.sleep(0.5)  # children give memory back after they have answered
            measured.append(resident_mib())
            print(f"{(step + 1) * tenth:6d} clips  {measured[-1]:8.1f} MiB")
        change = measured[-1] / measured[0] - 1
        print(f"change from 10 % to 100 %: {change:+.1%}")
    print("left in /dev/shm:", [path.name for path in set(SHARED.iterdir()) - before])


if __name__ == "__main__":
    main()
