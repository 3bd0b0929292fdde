"""Memory of a long run, without a model: resident bytes of the process and its workers as rows are finished.

python tests/perf/feed_memory.py [--rows 10000] [--questions 10] [--workers 2]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path

import av
import numpy as np

from vidpipe.job.progress import Progress
from vidpipe.job.prospect import look_ahead
from vidpipe.job.run import run
from vidpipe.recipe.load import load_recipe
from vidpipe.record.row import OutputRow

TINY_MODEL = Path(__file__).resolve().parents[2] / "data" / "tiny-qwen3vl"
SECONDS = 60


def make_clip(path: Path) -> None:
    """A minute of 320 x 240 noise, of which every row group sees another part."""
    rng = np.random.default_rng(0)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=10, options={"preset": "ultrafast", "g": "10"})
        stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
        for _ in range(10 * SECONDS):
            pixels = rng.integers(0, 255, (240, 320, 3), np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())


def resident_mib() -> float:
    """Proportional share of this process and its children."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    threads = [task.joinpath("children").read_text().split() for task in Path("/proc/self/task").iterdir()]
    total = 0
    for process in {str(os.getpid()), *children, *(child for thread in threads for child in thread)}:
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


class Sampler:
    """A display that takes a sample every so many rows."""

    def __init__(self, every: int) -> None:
        self.every, self.count = every, 0
        self.samples: list[tuple[int, float]] = []

    def begin(self, rows: int, done: int) -> None:
        """See `Display.begin`."""

    def state(self, text: str) -> None:
        """See `Display.state`."""

    def warn(self, text: str) -> None:
        """See `Display.warn`."""
        print(text)

    def row(self, row: OutputRow) -> None:
        """See `Display.row`."""
        assert row.status == "ok", row
        self.count += 1
        if self.count % self.every == 0:
            self.samples.append((self.count, resident_mib()))

    def show(self, progress: Progress) -> None:
        """See `Display.show`."""

    def end(self) -> None:
        """See `Display.end`."""


def main() -> None:
    """Run; print samples, and the peaks of both halves between the first and the last tenth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=10, help="rows a clip")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        make_clip(folder / "clip.mp4")
        clips = options.rows // options.questions
        with (folder / "rows.jsonl").open("w") as file:
            for number in range(options.rows):
                start_s = round((number // options.questions) * (SECONDS - 10) / clips, 3)
                row = {"id": str(number), "video": "clip.mp4", "question": "?", "clip_start": start_s}
                file.write(json.dumps({**row, "clip_end": start_s + 8}) + "\n")
        recipe = {
            "manifest": "rows.jsonl",
            "model": {"path": str(TINY_MODEL)},
            "engine": {"name": "fake"},
            "feed": {"workers": options.workers, "memory": "64MiB"},
        }
        (folder / "recipe.yaml").write_text(json.dumps(recipe))
        sampler = Sampler(options.rows // 50)
        result = run(look_ahead(load_recipe(folder / "recipe.yaml", [])), folder / "run", sampler)
    for rows, mib in sampler.samples[::5]:
        print(f"{rows} rows: {mib:.1f} MiB")
    early, late = (
        max(mib for rows, mib in sampler.samples if low <= rows / options.rows <= high)
        for low, high in ((0.1, 0.5), (0.5, 0.9))
    )
    print(f"peak from 10 % to 50 %: {early:.1f} MiB, from 50 % to 90 %: {late:.1f} MiB ({late / early - 1:+.1%})")
    assert result.feed is not None
    print(f"media in flight at most {result.feed.peak_media_bytes / 2**20:.1f} MiB of 64; {result.feed.sentence()}")


if __name__ == "__main__":
    main()
