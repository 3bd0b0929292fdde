"""STAND-IN for the program `cv-preinfer` (PyPI: codec-video-prep), for machines without it.

It writes the same files in the same form from a real video; which patches it chooses means
nothing: every canvas shows the upper half of one sampled frame and the lower half of the next.
"""

from __future__ import annotations

import argparse
import json
import stat
import sys
from pathlib import Path

import av
import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]


def install(folder: Path) -> None:
    """Put a program of that name into `folder`."""
    program = folder / "cv-preinfer"
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.checkpoints.cv_preinfer import main; main()"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{code}" "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def main() -> None:
    """The command line, as far as it is used."""
    parser = argparse.ArgumentParser()
    for name in ("video", "out_dir", "num_sampled_frames", "group_size", "images_per_group", "patch", "max_pixels"):
        parser.add_argument(f"--{name}", required=True)
    asked, _ = parser.parse_known_args()
    make(Path(asked.video), Path(asked.out_dir), *(int(value) for value in list(vars(asked).values())[2:]))


def make(video: Path, out: Path, sampled: int, group: int, images: int, patch: int, max_pixels: int) -> None:
    """Canvases, `src_patch_position.npy` and `meta.json` into `out`."""
    with av.open(str(video)) as container:
        stream = container.streams.video[0]
        fps = float(stream.average_rate or 0)
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(stream)]
    if len(frames) < 8:
        sys.exit("RuntimeError: no canvases produced")  # the real one's words for very short clips
    height, width = frames[0].shape[:2]
    scale = min(1.0, (max_pixels / (height * width)) ** 0.5)
    rows, columns = (max(2, 2 * int(side * scale / (2 * patch))) for side in (height, width))
    chosen = np.linspace(0, len(frames) - 1, min(sampled, len(frames))).round().astype(int).tolist()
    canvases = min(sampled // group * images, len(chosen) - 1)
    positions, names = [], []
    for number in range(canvases):
        canvas = np.empty((rows * patch, columns * patch, 3), np.uint8)
        for half, frame in enumerate(chosen[number : number + 2]):
            small = np.asarray(Image.fromarray(frames[frame]).resize((columns * patch, rows * patch)))
            border = rows // 4 * 2
            first, end = (0, border) if half == 0 else (border, rows)
            canvas[first * patch : end * patch] = small[first * patch : end * patch]
            positions += [[frame, row, column] for row in range(first, end) for column in range(columns)]
        names.append(f"canvas_{number:03d}.jpg")
        Image.fromarray(canvas).save(out / names[-1])
    np.save(out / "src_patch_position.npy", np.asarray(positions, np.int32))
    (out / "meta.json").write_text(json.dumps({"fps": fps, "total_frames": len(frames), "canvas_files": names}))
