"""What `--on ray` asks for and refuses, without a cluster."""

from __future__ import annotations

import importlib.util
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import vidpipe
from vidpipe.cluster.ray_connect import address_of, running_here
from vidpipe.cluster.ray_places import Places
from vidpipe.errors import CapabilityError, RecipeError
from vidpipe.job.feed_report import FeedReport, together
from vidpipe.record import disk

Make = Callable[..., Path]


def test_without_the_extra_the_line_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vidpipe.cluster.ray_connect.find_spec", lambda name: None)
    with pytest.raises(CapabilityError, match=r"pip install -e '.*\[ray\]'"):
        address_of("ray")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--on", "slurm"], "--on slurm: not a place to run. Examples: --on ray, --on ray:10.0.0.1:6379"),
        (["--on", "ray:ray://h:10001"], "Type the command on a node of the cluster"),
        (["--on", "ray", "--shard", "0/2"], "Leave out one of them"),
    ],
)
def test_what_cannot_be_had_is_refused_before_anything_is_begun(
    options: list[str], said: str, make_run: Make, tmp_path: Path
) -> None:
    if importlib.util.find_spec("ray") is None and "--shard" in options:
        pytest.skip("Ray is not installed")
    refused = vidpipe("run", make_run(), *options, cwd=tmp_path)
    assert refused.returncode == 2 and said in refused.stderr and not (tmp_path / "runs").exists()


def test_an_address_is_kept_as_it_is() -> None:
    pytest.importorskip("ray")
    assert address_of("ray") is None and address_of("ray:") is None
    assert address_of("ray:10.0.0.1:6379") == "10.0.0.1:6379"


def test_a_cluster_that_is_gone_is_not_waited_for(
    make_run: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    began_s = time.monotonic()
    refused = vidpipe("run", make_run(), "--on", f"ray:127.0.0.1:{port}", cwd=tmp_path)
    assert refused.returncode == 2 and f"no Ray cluster answers at 127.0.0.1:{port}" in refused.stderr
    assert time.monotonic() - began_s < 60 and not (tmp_path / "runs").exists()
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").write_text(f"127.0.0.1:{port}")
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert running_here() is None, "the last one that was started on this host"
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert running_here() == "10.0.0.1:6379"


@given(engines=st.integers(1, 64), cores=st.integers(0, 2000), workers=st.none() | st.integers(1, 500))
def test_decoders_are_shared_out(engines: int, cores: int, workers: int | None) -> None:
    places = Places(engines, 0, cores, [0], workers)
    shares = [places.decoders_of(engine) for engine in range(engines)]
    assert all(1 <= at_first <= most for at_first, most in shares)
    assert max(most for _, most in shares) - min(most for _, most in shares) <= 1
    total = sum(most for _, most in shares)
    if workers is not None:
        assert total == max(workers, engines) and all(at_first == most for at_first, most in shares)
    elif cores >= 2 * engines:
        assert total + engines <= cores and places.too_few() is None, "every actor finds a place"
    else:
        assert places.too_few() is not None


def test_engines_that_share_a_node() -> None:
    assert Places(8, 2, 64, [0, 8, 4]).engines_a_node == 4
    assert Places(2, 1, 64, [8]).engines_a_node == 2
    assert Places(2, 1, 64, [0]).engines_a_node == 1
    assert Places(3, 0, 64, [8]).engines_a_node == 3
    said = Places(2, 4, 64, [4, 0]).too_few()
    assert said is not None and said.startswith("Ray has 64 cores and 4 GPUs; 2 engines")
    assert "want 4 and 8" in said


def test_reports_of_several_engines_are_summed() -> None:
    report = FeedReport(10.0, {"start": 2.0, "decode": 1.0}, 5, 3, 0.5, 0.25, 0.125, 2, 100, 1000, 1)
    other = FeedReport(5.0, {"start": 1.0, "tail": 2.0}, 1, 1, 0.5, 0.25, 0.125, 1, 50, 1000, 2)
    summed = FeedReport(15.0, {"start": 3.0, "decode": 1.0, "tail": 2.0}, 6, 4, 1.0, 0.5, 0.25, 3, 150, 2000, 3)
    assert together([report, other]) == summed and together([]) is None


def test_a_run_directory_that_the_node_does_not_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    from vidpipe.cluster.ray_engine import see_run

    monkeypatch.setattr(disk, "SEEN_LATE_S", 0.0)
    with pytest.raises(RecipeError, match=r"is no run directory on .* a file system that all nodes"):
        see_run(tmp_path / "run")
    (tmp_path / "run.json").touch()
    see_run(tmp_path)
