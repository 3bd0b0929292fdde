"""Shared helpers: small clips, manifests and recipes made on the spot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from hypothesis import settings

# Before anything imports torch, which reads it once: with a thread for every core vLLM's CPU build is several times
# slower where cores are few and shared.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# In CI the same examples every time, so that a red run is a change's fault; elsewhere new ones. No example has a time
# limit: how long one takes says more of what else the machine does.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", derandomize=True, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "here")

ROOT = Path(__file__).resolve().parents[1]
TINY_MODEL = ROOT / "data" / "tiny-qwen3vl"
TINY_LLAVA_ONEVISION2 = ROOT / "data" / "tiny-llava-onevision2"


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests keep their timelines and copies of remote clips to themselves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def write_clip(path: Path, frames: int = 24, fps: int = 8, width: int = 64, height: int = 48) -> Path:
    """A lossless-enough H.264 clip whose frame i is flat grey of level 16 + 7 i mod 224."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=fps)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for i in range(frames):
            level = 16 + 7 * i % 224
            pixels = np.full((height, width, 3), level, np.uint8)
            for packet in stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)
    return path


@pytest.fixture
def make_clip(tmp_path: Path) -> Callable[..., Path]:
    """Writes a clip into the test's folder: `make_clip("a.mp4", frames=24, fps=8)`."""

    def make(name: str, **options: Any) -> Path:
        return write_clip(tmp_path / name, **options)

    return make


def write_run(
    folder: Path, rows: Sequence[dict[str, Any]] | None = None, script: dict[str, Any] | None = None, **recipe: Any
) -> Path:
    """Write clips a.mp4 and b.mp4, a manifest and a recipe for the fake engine; returns the recipe's path."""
    for name in ("a.mp4", "b.mp4"):
        if not (folder / name).exists():
            write_clip(folder / name)
    if rows is None:
        rows = [{"id": f"r{i}", "video": "ab"[i % 2] + ".mp4", "question": f"What is {i}?"} for i in range(8)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    values = {
        "manifest": "rows.jsonl",
        "model": {"path": str(TINY_MODEL)},
        "engine": {"name": "fake", "args": script or {}},
        **recipe,
    }
    path = folder / "recipe.yaml"
    path.write_text(json.dumps(values))  # JSON is YAML
    return path


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    """`write_run` into the test's folder."""
    return partial(write_run, tmp_path)


def vidpipe(*arguments: object, cwd: Path | None = None, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
    """The real command line in a process of its own."""
    command = [sys.executable, "-m", "vidpipe", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=timeout_s, check=False)
