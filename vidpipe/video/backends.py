"""Decoders behind one call: same indices in, same frames and times out, or a stated reason.

PyAV is the default and the only one that reads every file. OpenCV and torchcodec
count and time frames by their own rules; they are used only for files on which
those rules cannot differ from ours, and every frame's time is compared.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import cv2
import numpy as np
import numpy.typing as npt

from vidpipe.errors import CapabilityError
from vidpipe.video.container import PathLike, check_file, display_name
from vidpipe.video.decode import Frames, decode_frames
from vidpipe.video.probe import Probe, probe
from vidpipe.video.shown import packets_suffice

BackendName = Literal["pyav", "opencv", "torchcodec"]
_TIME_TOLERANCE_S = 1e-3
_Decoder = Callable[[PathLike, npt.NDArray[np.int64], Probe, int], tuple[npt.NDArray[np.uint8], list[float]]]


def decode_with(backend: BackendName, path: PathLike, indices: Sequence[int], *, threads: int = 1) -> Frames:
    """Decode the frames at `indices` as `decode_frames` does, by the named backend.

    CapabilityError when the backend is not installed, cannot read this file
    rightly, or gives frames of other times; use "pyav" then.
    """
    if backend == "pyav":
        return decode_frames(path, indices, threads=threads)
    decoders: dict[str, _Decoder] = {"opencv": _opencv, "torchcodec": _torchcodec}
    reason = unavailable(backend)
    if reason is not None:
        raise CapabilityError(f"backend {backend}: {reason}; use pyav")
    facts = probe(path)
    if (reason := _not_plain(path, facts)) is not None:
        raise CapabilityError(f"backend {backend}: {display_name(path)}: {reason}; use pyav")
    asked = np.asarray(indices, np.int64)
    places, slots = np.unique(asked, return_inverse=True)
    pixels, times_s = decoders[backend](path, places, facts, threads)
    ours = facts.timeline.times_s[places]
    wrong = np.abs(np.array(times_s) - (ours - facts.timeline.times_s[0])) > _TIME_TOLERANCE_S
    if wrong.any():
        at = int(np.argmax(wrong))
        raise CapabilityError(
            f"backend {backend}: {display_name(path)}: frame {places[at]}, shown at {ours[at]:.3f} s, came as"
            f" the one {times_s[at]:.3f} s after the first; use pyav"
        )
    return Frames(pixels[slots], asked, facts.timeline.times_s[asked], 0, facts.notes)


def unavailable(backend: BackendName) -> str | None:
    """Return why `backend` cannot be used on this machine, None when it can."""
    assert backend in get_args(BackendName), backend
    if backend != "torchcodec":
        return None
    try:
        importlib.import_module("torchcodec")
    except (ImportError, OSError, RuntimeError) as error:
        return f"torchcodec does not load ({str(error).splitlines()[0]})"
    return None


def _not_plain(path: PathLike, facts: Probe) -> str | None:
    """Return why other loaders may show this file otherwise, None when they cannot."""
    timeline = facts.timeline
    try:
        os.fsencode(path).decode()
    except UnicodeDecodeError:
        return "its name is not UTF-8, which ends OpenCV's process"
    if not packets_suffice(timeline.packets):
        return "its packets state no times, or repeated ones"
    if timeline.missing or timeline.packets.hidden.any() or len(timeline) != len(timeline.packets):
        return "it has hidden or damaged frames"
    if facts.rotation_deg or facts.mirrored:
        return "it is turned or mirrored"
    if facts.stream_index != 0:
        return "its video is not the first stream"
    return None


def _opencv(
    path: PathLike, places: npt.NDArray[np.int64], facts: Probe, threads: int
) -> tuple[npt.NDArray[np.uint8], list[float]]:
    check_file(path)
    # OpenCV reads this while it opens a file; only the file protocol may be used.
    os.environ["OPENCV_FFMPEG_CAPTURE_OPTIONS"] = f"protocol_whitelist;file|threads;{threads}"
    capture = cv2.VideoCapture("file:" + os.fsdecode(path), cv2.CAP_FFMPEG)
    width, height = facts.display_wh
    pixels = np.empty((len(places), height, width, 3), np.uint8)
    times_s: list[float] = []
    try:
        wanted = set(places.tolist())
        for index in range(int(places[-1]) + 1):
            if not capture.grab():
                raise CapabilityError(f"backend opencv: {display_name(path)}: ends before frame {index}; use pyav")
            if index in wanted:
                ok, bgr = capture.retrieve()
                if not ok or bgr.shape != pixels.shape[1:]:
                    raise CapabilityError(f"backend opencv: {display_name(path)}: frame {index} fails; use pyav")
                cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB, dst=pixels[len(times_s)])
                times_s.append(capture.get(cv2.CAP_PROP_POS_MSEC) / 1000)
    finally:
        capture.release()
    return pixels, times_s


def _torchcodec(
    path: PathLike, places: npt.NDArray[np.int64], facts: Probe, threads: int
) -> tuple[npt.NDArray[np.uint8], list[float]]:
    decoders: Any = importlib.import_module("torchcodec.decoders")
    check_file(path)
    decoder = decoders.VideoDecoder(
        os.fsdecode(path), dimension_order="NHWC", num_ffmpeg_threads=threads, seek_mode="exact"
    )
    batch = decoder.get_frames_at(places.tolist())
    start_s = float(facts.timeline.times_s[0])
    return batch.data.cpu().numpy(), [float(t) - start_s for t in batch.pts_seconds]
