"""What a scheduler's variables say of a task, and what a killed one leaves behind.

`cluster/*.json` hold the variables as published for each case.
"""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import vidpipe
from vidpipe.cluster.rank import rank_and_world
from vidpipe.errors import ClusterError
from vidpipe.record.disk import read_mark, replace_json
from vidpipe.record.run_dir import RunDir

Make = Callable[..., Path]
FOLDER = Path(__file__).parent / "cluster"


def variables(name: str) -> dict[str, str]:
    found: dict[str, str] = json.loads((FOLDER / f"{name}.json").read_text())["env"]
    return found


@pytest.fixture
def as_task(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sets a case's variables, and no others of Slurm's."""

    def set_variables(name: str) -> None:
        for variable in [name for name in os.environ if name.startswith("SLURM_")]:
            monkeypatch.delenv(variable)
        for variable, value in variables(name).items():
            monkeypatch.setenv(variable, value)

    return set_variables


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("c_one_based", (3, 4)),
        ("c_step", (3, 4)),
        ("c_no_slurm", (0, 1)),
        ("c_not_array", (0, 1)),
        ("c_more_tasks_than_rows", (3, 4)),
        ("c_stale_temp", (0, 4)),
        ("c_rename_seen_late", (1, 4)),
    ],
)
def test_shares(name: str, expected: tuple[int, int]) -> None:
    assert rank_and_world(variables(name)) == expected


@pytest.mark.parametrize("name", ["c_sparse_list", "c_missing_count", "c_undef_sentinel", "c_out_of_range"])
def test_refused(name: str, make_run: Make, as_task: Callable[[str], None]) -> None:
    with pytest.raises(ClusterError) as raised:
        rank_and_world(variables(name))
    assert raised.value.kind == "array_shape"
    as_task(name)
    recipe = make_run()
    result = vidpipe("run", recipe, "-o", recipe.parent / "run", "--shard", "slurm")
    assert result.returncode == 2 and "array_shape" in result.stderr and "--shard I/N" in result.stderr
    assert vidpipe("run", recipe, "-o", recipe.parent / "run", "--shard", "0/13").returncode == 0, "said, not guessed"


@given(first=st.integers(0, 9), step=st.integers(1, 9), count=st.integers(1, 9), processes=st.integers(1, 3))
def test_every_share_once(first: int, step: int, count: int, processes: int) -> None:
    shares = [
        rank_and_world(
            {
                "SLURM_ARRAY_TASK_ID": str(first + place * step),
                "SLURM_ARRAY_TASK_MIN": str(first),
                "SLURM_ARRAY_TASK_MAX": str(first + (count - 1) * step),
                "SLURM_ARRAY_TASK_COUNT": str(count),
                "SLURM_ARRAY_TASK_STEP": str(step),
                "SLURM_STEP_NUM_TASKS": str(processes),
                "SLURM_PROCID": str(process),
            }
        )
        for place in range(count)
        for process in range(processes)
    ]
    assert shares == [(rank, count * processes) for rank in range(count * processes)]


@pytest.mark.parametrize("variable", ["MIN", "MAX", "COUNT", "ID"])
@pytest.mark.parametrize("value", ["", "x", "-1", "4294967295", None])
def test_a_variable_that_is_no_number(variable: str, value: str | None) -> None:
    environment = variables("c_one_based")
    del environment[f"SLURM_ARRAY_TASK_{variable}"]
    if value is not None:
        environment[f"SLURM_ARRAY_TASK_{variable}"] = value
    with pytest.raises(ClusterError):
        rank_and_world(environment)


def test_more_tasks_than_rows(make_run: Make, as_task: Callable[[str], None]) -> None:
    recipe = make_run([{"id": name, "video": f"{name}.mp4", "question": "?"} for name in "ab"])
    (recipe.parent / "rows.jsonl").write_bytes(b"\xef\xbb\xbf" + (recipe.parent / "rows.jsonl").read_bytes())
    as_task("c_more_tasks_than_rows")
    result = vidpipe("run", recipe, "-o", recipe.parent / "run", "--shard", "slurm")
    assert result.returncode == 0, result.stderr
    assert pq.read_table(recipe.parent / "run" / "results.parquet").num_rows == 0


def test_leftovers_of_a_host_that_is_gone(make_run: Make, as_task: Callable[[str], None]) -> None:
    recipe = make_run()
    run_dir = RunDir(recipe.parent / "run")
    run_dir.create()
    stale = run_dir.claim_file(0, 1)
    holder = {"host": "gone", "pid": 7, "boot": "b", "namespace": "n", "began": "1", "slurm_task": "1000_0"}
    stale.write_text(json.dumps(holder) + "\n")
    an_hour_ahead = time.time() + 3600
    os.utime(stale, (an_hour_ahead, an_hour_ahead))
    half_written = run_dir.parts / ".000000.0001.parquet.0.tmp"
    half_written.write_bytes(b"PAR1")
    as_task("c_stale_temp")
    result = vidpipe("run", recipe, "-o", run_dir.path, "--shard", "slurm", timeout_s=30)
    assert result.returncode == 0, result.stderr
    assert pq.read_table(run_dir.results)["id"].to_pylist() == [f"r{i}" for i in range(8)]


def test_a_file_that_is_replaced_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.json"
    replace_json(path, {"n": 0, "filler": "x" * 100_000})
    stop = threading.Event()

    def replace() -> None:
        for n in range(1_000_000):
            if stop.is_set():
                return
            replace_json(path, {"n": n, "filler": "x" * 100_000})

    writer = threading.Thread(target=replace)
    writer.start()
    try:
        for _ in range(200):
            found = read_mark(path)
            assert found is not None and len(found["filler"]) == 100_000
    finally:
        stop.set()
        writer.join()

    read_bytes, left = Path.read_bytes, [errno.ESTALE, errno.ESTALE]

    def sometimes_stale(self: Path) -> bytes:
        if left:
            raise OSError(left.pop(), "Stale file handle")
        return read_bytes(self)

    monkeypatch.setattr(Path, "read_bytes", sometimes_stale)
    assert read_mark(path) is not None and not left


def test_a_part_that_is_seen_later_than_its_mark(make_run: Make) -> None:
    recipe = make_run()
    run_dir = RunDir(recipe.parent / "run")
    assert vidpipe("run", recipe, "-o", run_dir.path).returncode == 0
    (part,) = run_dir.parts.glob("*.parquet")
    hidden = part.rename(recipe.parent / "hidden")
    threading.Timer(2.0, lambda: hidden.rename(part)).start()
    result = vidpipe("merge", run_dir.path, "-o", recipe.parent / "all.parquet", "--json")
    assert result.returncode == 0 and json.loads(result.stdout)["partial"] is False, result.stderr
