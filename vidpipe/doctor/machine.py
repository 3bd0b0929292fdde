"""The machine without its engine: Python, cores, memory, shared memory, decoders, the file system of runs."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from vidpipe.doctor.finding import Finding
from vidpipe.job import host
from vidpipe.job.budget import default_limit
from vidpipe.record.disk import has_links, server_now_s

PYTHONS = ((3, 11), (3, 14))
"""From, and before; as `requires-python`."""
SHARED_MEMORY = Path("/dev/shm")
PROBE_BYTES = 64 * 2**20
"""A few prepared clips: with less, workers cannot hand anything over."""
DECODERS = ("h264", "hevc", "vp9", "av1", "mpeg4")
MOST_SKEW_S = 5.0
GIB = 2**30


def machine(runs: Path) -> Iterator[Finding]:
    """Look at everything but the engine.

    Args:
        runs: Folder in which a run would be recorded; it need not be there yet.
    """
    yield python()
    yield cores()
    yield shared_memory(SHARED_MEMORY)
    yield decoders()
    yield opencv()
    yield from file_system(runs)


def python() -> Finding:
    """The interpreter."""
    found = f"{platform.python_version()} ({sys.executable})"
    if PYTHONS[0] <= sys.version_info[:2] < PYTHONS[1]:
        return Finding("python", "ok", found)
    return Finding("python", "error", found, "vidpipe needs Python 3.11 to 3.13: python3.12 -m venv .venv")


def cores() -> Finding:
    """Cores that this process may use."""
    count = host.cores()
    if count > 1:
        return Finding("cores", "ok", f"{count}")
    return Finding("cores", "warning", f"{count}", "clips are decoded beside the engine: ask for more than one core")


def shared_memory(folder: Path) -> Finding:
    """Whether clips can be handed over in `folder`; its space is taken for real, because writing beyond it kills."""
    probe = folder / f"vidpipe-doctor-{os.getpid()}"
    try:
        descriptor = os.open(probe, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, PROBE_BYTES)
        finally:
            os.close(descriptor)
            probe.unlink()
        free = shutil.disk_usage(folder).free
    except OSError as error:
        advice = (
            "in a container give it room (docker run --shm-size 8g, apptainer exec --bind /dev/shm), or make it "
            "writable; prepared clips pass from process to process there"
        )
        return Finding("shared memory", "error", f"{PROBE_BYTES >> 20} MiB in {folder}: {error.strerror}", advice)
    found = f"{free / GIB:.1f} GiB free in {folder}, media in flight take at most {default_limit() / GIB:.1f} GiB"
    return Finding("shared memory", "ok", found)


def decoders() -> Finding:
    """PyAV and the decoders in its FFmpeg."""
    try:
        import av
        import av.codec
    except ImportError as error:
        return Finding("decoders", "error", f"PyAV does not load: {error}", "pip install --force-reinstall av")
    libavcodec = ".".join(map(str, av.library_versions["libavcodec"]))
    found = f"PyAV {av.__version__}, libavcodec {libavcodec}"
    missing = [name for name in DECODERS if not _decodes(name)]
    if not missing:
        return Finding("decoders", "ok", found)
    advice = "use PyAV's own wheel: pip install --force-reinstall --only-binary=:all: av"
    return Finding("decoders", "warning", f"{found}, without {', '.join(missing)}", advice)


def _decodes(name: str) -> bool:
    import av.codec

    try:
        av.codec.Codec(name, "r")
    except ValueError:
        return False
    return True


def opencv() -> Finding:
    """OpenCV, which resizes."""
    try:
        import cv2
    except ImportError as error:
        advice = "pip install --force-reinstall opencv-python-headless"
        return Finding("opencv", "error", f"it does not load: {error}", advice)
    return Finding("opencv", "ok", str(cv2.__version__))


def file_system(runs: Path) -> Iterator[Finding]:
    """What recording needs of the file system that `runs` is on."""
    folder = runs.resolve()
    while not folder.exists():
        folder = folder.parent
    try:
        links = has_links(folder)
        skew_s = server_now_s(folder) - time.time()
    except OSError as error:
        advice = "choose another folder: vidpipe run RECIPE -o RUN_DIR"
        yield Finding("runs", "error", f"{folder}: {error.strerror}", advice)
        return
    free = shutil.disk_usage(folder).free
    room = f"{free / GIB:.1f} GiB free in {folder}"
    if free < GIB:
        yield Finding("runs", "warning", room, "make room, or choose another folder: vidpipe run RECIPE -o RUN_DIR")
    else:
        yield Finding("runs", "ok", room)
    if links:
        yield Finding("hard links", "ok", "there are")
    else:
        advice = "renaming or exclusive creation stands in for them; on NFS older than version 3 use one process a run"
        yield Finding("hard links", "warning", f"{folder} has none", advice)
    if abs(skew_s) > MOST_SKEW_S:
        found = f"files in {folder} are stamped {skew_s:+.0f} s off this host's clock"
        advice = "leases go by the server's clock, so runs are safe; to set this host's: chronyc makestep"
        yield Finding("clock", "warning", found, advice)


def version_of(distribution: str) -> str | None:
    """Of an installed package; None if it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
