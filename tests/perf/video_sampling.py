"""CPU seconds to sample frames from a clip: vidpipe against the ffmpeg program and OpenCV, in one run.

    python tests/perf/video_sampling.py                    # 60 s of 1080p, 32 frames (made on the spot)
    python tests/perf/video_sampling.py --minutes 30 --frames 8 --size 640x360
    python tests/perf/video_sampling.py --clip FILE --frames 32

One thread each. "seek" is one `ffmpeg -ss` call a frame less its process start. The
clip is read once before, so that it is in the page cache for all.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from unittest.mock import patch

import av
import cv2
import numpy as np

from vidpipe.video.decode import decode_frames
from vidpipe.video.packets import PacketTable
from vidpipe.video.plan import Run
from vidpipe.video.timeline import read_timeline

FFMPEG = ["ffmpeg", "-v", "error", "-nostdin", "-threads", "1"]


def make_clip(path: Path, seconds: int, size: str) -> None:
    """A textured clip with noise, H.264, key frames every 2 s; longer ones repeat their first minute."""
    source = f"testsrc2=s={size}:r=30:d={min(seconds, 60)}"
    encode = ["-c:v", "libx264", "-preset", "veryfast", "-g", "60", "-keyint_min", "60", "-sc_threshold", "0"]
    picture = ["-vf", "noise=alls=8:allf=t", "-pix_fmt", "yuv420p"]
    minute = path.with_name("minute.mp4")
    quiet = ["ffmpeg", "-v", "error", "-y"]
    subprocess.run([*quiet, "-f", "lavfi", "-i", source, *picture, *encode, minute], check=True)
    repeats = str(max(0, -(-seconds // 60) - 1))
    subprocess.run([*quiet, "-stream_loop", repeats, "-i", minute, "-c", "copy", path], check=True)


def cpu_s(work: Callable[[], object]) -> float:
    """User and system seconds of this process and its children while `work` runs."""

    def used() -> float:
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(usage.ru_utime + usage.ru_stime for usage in usages)

    before = used()
    work()
    return used() - before


def grab_all(path: Path, indices: list[int]) -> list[np.ndarray]:
    """Frames as vLLM's OpenCV loader reads them: grab every one, retrieve the wanted."""
    options = "threads;1"
    os.environ["OPENCV_FFMPEG_CAPTURE_OPTIONS"] = options
    capture = cv2.VideoCapture(str(path), cv2.CAP_FFMPEG)
    frames = []
    for index in range(indices[-1] + 1):
        assert capture.grab()
        if index in indices:
            frames.append(cv2.cvtColor(capture.retrieve()[1], cv2.COLOR_BGR2RGB))
    return frames


def one_pass(path: Path, indices: list[int]) -> None:
    """One run of the ffmpeg program with a select filter."""
    select = "+".join(f"eq(n\\,{index})" for index in indices)
    output = [
        "-vsync",
        "0",
        "-frames:v",
        str(len(indices)),
        "-pix_fmt",
        "rgb24",
        "-f",
        "rawvideo",
        "-y",
        "/dev/null",
    ]
    subprocess.run([*FFMPEG, "-i", path, "-an", "-vf", f"select='{select}'", *output], check=True)


def seek_each(path: Path, times_s: list[float]) -> None:
    """One run of the ffmpeg program a frame."""
    for time_s in times_s:
        output = ["-frames:v", "1", "-pix_fmt", "rgb24", "-f", "rawvideo", "-y", "/dev/null"]
        subprocess.run([*FFMPEG, "-ss", f"{max(0, time_s - 0.001):.6f}", "-i", path, "-an", *output], check=True)


def process_start_s(count: int) -> float:
    """CPU seconds of starting the ffmpeg program `count` times."""

    def start() -> None:
        for _ in range(count):
            subprocess.run(["ffmpeg", "-v", "error", "-version"], check=True, stdout=subprocess.DEVNULL)

    return cpu_s(start)


def main() -> None:
    """Print a table of CPU seconds and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clip", type=Path)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--frames", type=int, default=32)
    parser.add_argument("--size", default="1920x1080")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--walk", action="store_true", help="also decode the whole file with vidpipe")
    options = parser.parse_args()
    cv2.setNumThreads(1)
    with tempfile.TemporaryDirectory() as folder:
        clip = options.clip or Path(folder) / "clip.mp4"
        if options.clip is None:
            make_clip(clip, int(options.minutes * 60), options.size)
        clip.read_bytes()
        timeline = read_timeline(clip)
        indices = np.linspace(0, len(timeline) - 1, options.frames).round().astype(int).tolist()
        times_s = timeline.times_s[indices].tolist()
        print(
            f"{len(timeline)} frames, {clip.stat().st_size / 2**20:.0f} MiB; load {os.getloadavg()[0]:.1f};"
            f" PyAV {av.__version__}, OpenCV {cv2.__version__}"
        )
        start_s = process_start_s(len(indices))
        arms: dict[str, Callable[[], object]] = {
            "vidpipe, timeline known": lambda: decode_frames(clip, indices, timeline=timeline),
            "vidpipe, with timeline": lambda: decode_frames(clip, indices),
            "ffmpeg, one pass": lambda: one_pass(clip, indices),
            "ffmpeg, seek a frame": lambda: seek_each(clip, times_s),
            "OpenCV, grab all": lambda: grab_all(clip, indices),
        }
        if options.walk:
            arms["vidpipe, walk"] = lambda: walk(clip, indices)
        best = {name: min(cpu_s(work) for _ in range(options.rounds)) for name, work in arms.items()}
        best["ffmpeg, seek a frame"] -= start_s
        ours = best["vidpipe, with timeline"]
        for name, seconds in best.items():
            print(f"{name:26} {seconds:8.2f} CPU s   {seconds / ours:6.2f} x vidpipe")
        same = np.array_equal(decode_frames(clip, indices).pixels, np.stack(grab_all(clip, indices)))
        print("frames equal to OpenCV's:", same)


def walk(clip: Path, indices: list[int]) -> None:
    """Decode everything from the start to the last frame, as loaders do."""

    def whole(_: PacketTable, wanted: Iterable[int], __: int = 0) -> list[Run]:
        return [Run(0, max(wanted))]

    with patch("vidpipe.video.decode.plan_runs", whole), patch("vidpipe.video.decode._SKIP_BY_PACKET", frozenset()):
        decode_frames(clip, indices)


if __name__ == "__main__":
    start = time.monotonic()
    main()
    print(f"{time.monotonic() - start:.0f} s in all")
