"""A child that crashes, hangs or is killed costs one job; nothing of it stays behind."""

from __future__ import annotations

import ctypes
import functools
import gc
import math
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from tests.video.clips import write_blocks
from vidpipe.errors import EngineError, MediaError
from vidpipe.video.channel import JobFailedError
from vidpipe.video.decode import decode_frames
from vidpipe.video.pool import ClipPool, default_time_limit_s
from vidpipe.video.timeline import read_timeline

SOME_BYTES = 64 * 2**20


def crash() -> None:
    """What a native decoder does on a bad day."""
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    ctypes.string_at(0)


def hang() -> None:
    """An endless loop that answers no polite signal."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
    while True:
        pass


def end() -> None:
    os._exit(3)


def fail() -> None:
    raise ZeroDivisionError("a mistake of ours")


def pid() -> int:
    return os.getpid()


def start_and_wait(told: Path) -> None:
    """As the checkpoint's code does that runs a program."""
    program = subprocess.Popen(["sleep", "1000"])
    told.write_text(str(program.pid))
    program.wait()


def sleep(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def tell_and_sleep(told: Path) -> None:
    told.with_suffix(".new").write_text(str(os.getpid()))
    told.with_suffix(".new").rename(told)
    time.sleep(60)


def zeros(count: int) -> list[np.ndarray]:
    return [np.zeros(count, np.uint8), np.arange(5)]


@pytest.fixture
def pool() -> Iterator[ClipPool]:
    with ClipPool(2) as pool:
        yield pool


def run(pool: ClipPool, function: object, *args: object, time_limit_s: float = 60) -> object:
    return pool.submit(function, *args, name="clip.mp4", time_limit_s=time_limit_s).result(90)  # type: ignore[arg-type]


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(condition: object, limit_s: float = 20) -> bool:
    end_s = time.monotonic() + limit_s
    while time.monotonic() < end_s:
        if condition():  # type: ignore[operator]
            return True
        time.sleep(0.02)
    return False


def test_frames_are_the_same_as_without(pool: ClipPool, tmp_path: Path) -> None:
    clip = write_blocks(tmp_path / "clip.mp4")
    here = decode_frames(clip, [3, 17, 17])
    there = pool.submit(decode_frames, clip, [3, 17, 17], name="clip", time_limit_s=60).result(90)
    assert np.array_equal(here.pixels, there.pixels)
    assert there.indices.tolist() == [3, 17, 17]
    assert there.times_s.tolist() == here.times_s.tolist()


def test_errors_keep_their_kind(pool: ClipPool) -> None:
    with pytest.raises(MediaError) as error:
        run(pool, read_timeline, "/nonexistent.mp4")
    assert error.value.kind == "not_found"


@pytest.mark.parametrize("limit_s", [math.inf, 1e300, 1e10])
def test_a_limit_may_be_longer_than_any_clip(pool: ClipPool, limit_s: float) -> None:
    assert run(pool, sleep, 0.0, time_limit_s=limit_s)


@pytest.mark.parametrize(("how", "words"), [(crash, "SIGSEGV"), (end, "exit code 3")])
def test_a_crash_costs_one_job(pool: ClipPool, how: object, words: str) -> None:
    futures = [pool.submit(sleep, 0.05, name=str(n), time_limit_s=60) for n in range(6)]
    with pytest.raises(MediaError, match=words) as error:
        run(pool, how)
    assert error.value.kind == "corrupt"
    assert all(future.result(90) for future in futures)
    assert run(pool, pid)


def test_a_hang_costs_one_job_and_its_child(pool: ClipPool) -> None:
    start_s = time.monotonic()
    hung = pool.submit(hang, name="loop.mp4", time_limit_s=1.0)
    others = [pool.submit(sleep, 0.05, name=str(n), time_limit_s=60) for n in range(4)]
    with pytest.raises(MediaError, match=r"loop\.mp4.*1 s") as error:
        hung.result(90)
    assert error.value.kind == "timeout"
    assert time.monotonic() - start_s < 30
    assert all(future.result(90) for future in others)


def test_what_a_child_has_started_dies_with_it(pool: ClipPool, tmp_path: Path) -> None:
    hung = pool.submit(start_and_wait, tmp_path / "pid", name="slow.mp4", time_limit_s=3.0)
    with pytest.raises(MediaError, match="3 s"):
        hung.result(90)
    assert wait_for(lambda: not is_running(int((tmp_path / "pid").read_text())))


def test_a_child_killed_from_outside_costs_one_job(pool: ClipPool, tmp_path: Path) -> None:
    running = pool.submit(tell_and_sleep, tmp_path / "pid", name="victim", time_limit_s=90)
    assert wait_for((tmp_path / "pid").exists)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    with pytest.raises(MediaError, match=r"victim.*SIGKILL"):
        running.result(90)
    assert run(pool, pid)


def test_our_own_mistakes_are_not_the_files_fault(pool: ClipPool) -> None:
    with pytest.raises(JobFailedError, match="a mistake of ours"):
        run(pool, fail)


def test_large_arrays_are_freed_with_their_last_user(pool: ClipPool) -> None:
    def shared_bytes() -> int:
        line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("RssShmem"))
        return int(line.split()[1]) * 1024

    before = shared_bytes()
    arrays = run(pool, zeros, 50_000_000)
    assert int(arrays[0].sum()) == 0  # type: ignore[index]
    assert arrays[1].tolist() == [0, 1, 2, 3, 4]  # type: ignore[index]
    assert shared_bytes() - before > 40_000_000
    del arrays
    gc.collect()
    assert shared_bytes() - before < 1_000_000
    assert not [name for name in os.listdir("/dev/shm") if "vidpipe" in name]  # noqa: PTH208


def test_closing_kills_what_runs_and_cancels_what_waits() -> None:
    pool = ClipPool(1)
    child = run(pool, pid)
    running = pool.submit(hang, name="a", time_limit_s=90)
    waiting = pool.submit(pid, name="b", time_limit_s=90)
    wait_for(running.running)
    pool.close()
    assert isinstance(running.exception(), CancelledError)  # not a fault of the clip
    assert waiting.cancelled()
    assert not is_running(child)  # type: ignore[arg-type]


def test_children_die_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        textwrap.dedent(
            """
            import time
            from tests.video import test_pool as jobs
            from vidpipe.video.pool import ClipPool
            pool = ClipPool(2)
            print(jobs.run(pool, jobs.pid), flush=True)
            pool.submit(jobs.hang, name="a", time_limit_s=600)
            pool.submit(jobs.hang, name="b", time_limit_s=600)
            time.sleep(0.5)
            print("busy", flush=True)
            time.sleep(600)
            """
        )
    )
    root = Path(__file__).parents[2]
    parent = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(root)}
    )
    assert parent.stdout is not None
    with parent.stdout:
        child = int(parent.stdout.readline())
        assert parent.stdout.readline() == b"busy\n"
    parent.kill()
    parent.wait()
    assert wait_for(lambda: not is_running(child))
    assert not [name for name in os.listdir("/dev/shm") if "vidpipe" in name]  # noqa: PTH208


def slow_start(notes: Path) -> None:
    time.sleep(1.0)
    with (notes / str(os.getpid())).open("a") as file:
        file.write("once ")


def test_what_comes_first_comes_once_a_child_and_costs_no_job_its_time(tmp_path: Path) -> None:
    with ClipPool(1) as pool:
        first = functools.partial(slow_start, tmp_path)
        jobs = [pool.submit(pid, name=str(n), time_limit_s=0.5, first=first) for n in range(3)]
        child = jobs[0].result(90)
        assert all(job.result(90) == child for job in jobs)
        assert (tmp_path / str(child)).read_text() == "once "
        with pytest.raises(MediaError):
            run(pool, crash)
        assert pool.submit(pid, name="n", time_limit_s=0.5, first=first).result(90) != child
    assert len(list(tmp_path.iterdir())) == 2, "a child that replaces a dead one gets ready too"


_kept: list[list[object]] = []


def make_many_objects() -> None:
    before = gc.get_stats()[0]["collections"]
    _kept.extend([] for _ in range(200_000))
    assert gc.get_stats()[0]["collections"] == before, "nothing was looked through meanwhile"


def objects_to_look_through() -> tuple[int, bool]:
    return len(gc.get_objects()), gc.isenabled()


def test_what_comes_first_is_not_looked_through_for_garbage() -> None:
    with ClipPool(1) as pool:
        job = pool.submit(objects_to_look_through, name="n", time_limit_s=60, first=make_many_objects)
        objects, is_enabled = job.result(90)
    assert objects < 50_000 and is_enabled


def threads_of_native_libraries() -> str:
    return os.environ["OMP_NUM_THREADS"]


def test_a_child_computes_with_one_thread_whatever_its_parent_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "16")
    with ClipPool(1) as pool:
        assert run(pool, threads_of_native_libraries) == "1"


def niceness() -> int:
    return os.nice(0)


def test_children_give_way_as_far_as_asked() -> None:
    with ClipPool(1) as pool:
        usual = run(pool, niceness)
    with ClipPool(1, niceness=5) as pool:
        assert run(pool, niceness) == usual + 5


def use_much_memory() -> None:
    bytearray(SOME_BYTES).replace(b"\0", b"\1")


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.parametrize("kept_bytes", [0, 4 * SOME_BYTES])
def test_a_child_keeps_memory_from_job_to_job_up_to_a_limit(kept_bytes: int) -> None:
    with ClipPool(1, kept_bytes=kept_bytes) as pool:
        before = run(pool, resident_bytes)
        run(pool, use_much_memory)
        kept = run(pool, resident_bytes) - before
    assert kept > SOME_BYTES if kept_bytes else kept < SOME_BYTES / 4


def test_what_the_user_says_of_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.trim_threshold=0:glibc.malloc.mmap_threshold=65536")
    with ClipPool(1) as pool:
        before = run(pool, resident_bytes)
        run(pool, use_much_memory)
        assert run(pool, resident_bytes) - before < SOME_BYTES / 4


def test_a_first_that_fails_fails_the_job() -> None:
    with ClipPool(1) as pool, pytest.raises(JobFailedError, match="a mistake of ours"):
        pool.submit(pid, name="n", time_limit_s=60, first=fail).result(90)


@pytest.mark.parametrize("error", [BlockingIOError(11, "no more processes"), OSError(24, "too many open files")])
def test_a_child_that_cannot_be_started_is_no_clips_fault(error: OSError, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", Mock(side_effect=error))
    with ClipPool(1) as pool, pytest.raises(EngineError, match="cannot be started"):
        run(pool, pid)


def test_a_child_that_dies_while_it_starts_is_no_clips_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with ClipPool(1) as pool, pytest.raises(EngineError, match="does not start"):
        run(pool, pid)


def test_longer_clips_get_more_time() -> None:
    assert default_time_limit_s(0) == 30
    assert default_time_limit_s(600) == 630
