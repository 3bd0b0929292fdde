"""Rates, idle time so far, what all processes have recorded, GPUs."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidpipe.job.gauges import Gauges
from vidpipe.job.gpu import Gpu, Gpus
from vidpipe.job.idle import IdleClock
from vidpipe.job.rate import Rate
from vidpipe.job.run_count import RunCount
from vidpipe.job.tolerance import FailureLimit
from vidpipe.recipe.schema import Output
from vidpipe.record.run_dir import RunDir
from vidpipe.record.shards import add_shards, read_shards


@given(
    st.floats(0.1, 100), st.floats(0, 1000), st.lists(st.floats(0.1, 20), min_size=2, max_size=60), st.integers(1, 9)
)
def test_a_steady_rate_is_found_whatever_came_before(
    per_s: float, loading_s: float, steps: list[float], looks: int
) -> None:
    rate, now_s = Rate(window_s=60), 0.0
    for _ in range(looks):
        rate.see(now_s, 5)
        now_s += loading_s
    assert rate.per_s is None, "it has not grown: no rate, not zero"
    began_s = now_s - loading_s
    for step in steps:
        now_s += step
        rate.see(now_s, 5 + per_s * (now_s - began_s))
    assert rate.per_s == pytest.approx(per_s, rel=1e-6)
    count = 5 + per_s * (now_s - began_s)
    assert rate.seconds_to(count + 10 * per_s) == pytest.approx(10, rel=1e-6)
    assert rate.seconds_to(count - 1) == 0.0


def test_what_was_long_ago_does_not_count() -> None:
    rate = Rate(window_s=10)
    for second in range(100):
        rate.see(second, 50 * min(second, 50) + max(0, second - 50))
    assert rate.per_s == pytest.approx(1)
    rate.see(1000, 50 * 50 + 49)
    assert rate.seconds_to(1e6) is None or rate.per_s < 0.1, "a stall shows"


@given(st.lists(st.tuples(st.sampled_from(["filled", "emptied", "nothing"]), st.floats(0.01, 5)), max_size=30))
def test_idle_time_so_far_is_what_the_end_will_say(events: list[tuple[str, float]]) -> None:
    clock, now_s = IdleClock(0.0), 3.0
    assert sum(clock.so_far(2.0).values()) == clock.so_far(2.0)["start"] == 2.0
    clock.started(now_s)
    busy_s, full = 0.0, False
    for name, seconds in events:
        if name == "filled":
            clock.filled(now_s, prepare_s=0.1, transfer_s=0.1)
            full = True
        elif name == "emptied":
            clock.emptied(now_s)
            full = False
        elif not full:
            clock.nothing_to_take(now_s)
        before = clock.so_far(now_s)
        now_s += seconds
        busy_s += seconds if full else 0.0
        after = clock.so_far(now_s)
        assert all(after[cause] >= before[cause] - 1e-9 for cause in after)
        assert sum(after.values()) == pytest.approx(now_s - busy_s)
    foretold = sum(clock.so_far(now_s).values())
    assert clock.ended(now_s) == clock.elapsed_s(now_s) and sum(clock.idle_s.values()) == pytest.approx(foretold)


def test_shards_of_other_processes_count_when_they_are_done(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path)
    run_dir.create()
    ids = [["a", "b"], ["c", "d", "e", "f"], ["g"], ["h"]]
    add_shards(run_dir, [[(name, "sha") for name in shard] for shard in ids], [100, 40, 6, 1000], read_shards(run_dir))
    shards, limit = read_shards(run_dir), FailureLimit(Output(), 8)
    count = RunCount(run_dir, shards, {0, 1, 2}, limit)
    assert (count.rows, count.cost, count.recorded) == (7, 146, (0, 0.0)), "the fourth is another share's"
    limit.see(1, {"ok": 2, "media_error": 1})
    assert count.recorded == (3, 30.0)
    (run_dir.done / "000000").write_text("{}\n")
    (run_dir.done / "000003").write_text("{}\n")
    assert count.recorded == (3, 30.0), "nobody has looked"
    count.look()
    assert count.recorded == (5, 130.0)
    limit.see(0, {"ok": 2})
    assert count.recorded == (5, 130.0), "not twice"


@pytest.mark.parametrize(
    ("up", "in_engine", "ready", "coming", "waits_for"),
    [
        (False, 0, 0, 1, "engine_start"),
        (True, 1, 0, 1, None),
        (True, 0, 1, 0, None),
        (True, 0, 0, 2, "clips"),
        (True, 0, 0, 0, "other_processes"),
    ],
)
def test_what_an_engine_waits_for(up: bool, in_engine: int, ready: int, coming: int, waits_for: str | None) -> None:
    assert Gauges(up, 9.0, {"decode": 2.0}, 0, 0, 0, 0, 0, 0, 1, coming, ready, in_engine, 0, 1).waits_for == waits_for


class _Nvml(ModuleType):
    """As much of the bindings as is used, with two GPUs; the second one is a MIG slice."""

    class NVMLError(Exception):
        pass

    def __init__(self, *, driver: bool = True) -> None:
        super().__init__("pynvml")
        self._driver = driver

    def nvmlInit(self) -> None:  # noqa: N802
        if not self._driver:
            raise self.NVMLError("no driver")

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 2

    def nvmlDeviceGetHandleByIndex(self, number: int) -> int:  # noqa: N802
        if number > 1:
            raise self.NVMLError("no such device")
        return number

    def nvmlDeviceGetHandleByUUID(self, name: bytes) -> int:  # noqa: N802
        return {b"GPU-a": 0, b"MIG-b": 1}[name]

    def nvmlDeviceGetName(self, device: int) -> str | bytes:  # noqa: N802
        return ("one", b"two")[device]

    def nvmlDeviceGetMemoryInfo(self, device: int) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(used=device + 1, total=10)

    def nvmlDeviceGetUtilizationRates(self, device: int) -> SimpleNamespace:  # noqa: N802
        if device == 1:
            raise self.NVMLError("not supported")
        return SimpleNamespace(gpu=87)


ONE, TWO = Gpu("one", 0.87, 1, 10), Gpu("two", None, 2, 10)


@pytest.mark.parametrize(
    ("visible", "found"),
    [(None, (ONE, TWO)), ("1,0", (TWO, ONE)), ("GPU-a", (ONE,)), ("MIG-b", (TWO,)), ("", ()), ("7", ())],
)
def test_gpus_are_those_that_cuda_is_shown(
    visible: str | None, found: tuple[Gpu, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", _Nvml())
    assert Gpus({} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}).read() == found


def test_no_driver_or_no_library_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", _Nvml(driver=False))
    assert Gpus({}).read() == ()
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert Gpus({}).read() == ()
