"""Whole runs on a real Ray: the answers of a plain run, and every row once whatever is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.conftest import ROOT, vidpipe
from tests.crash.test_kill import assert_every_row_once, recorded, texts, windows
from tests.ray.cluster import ENVIRONMENT, further_node, head, pids, start, wait_until

Make = Callable[..., Path]
ROWS = 60
TWO = ("--set", "engine.data_parallel=2")


def rows_of(results: Path) -> list[dict[str, Any]]:
    return pq.read_table(results).drop_columns(["seconds"]).to_pylist()


def test_the_answers_are_those_of_a_plain_run(make_run: Make, ray_address: str) -> None:
    rows = [*windows(14), {"id": "gone", "video": "gone.mp4", "question": "?"}]
    script = {"texts": texts(14) | {"r3": None}, "refuse": {"r5": "prompt_too_long"}}
    recipe = make_run(rows, script=script, feed={"memory": 1, "workers": 2}, output={"tolerance": 3})
    assert vidpipe("run", recipe, "-o", "plain", cwd=recipe.parent).returncode == 0
    on_ray = start(recipe, "--on", f"ray:{ray_address}", "-o", "ray", *TWO)
    assert on_ray.wait(timeout=120) == 0, (recipe.parent / "said").read_text()
    found = rows_of(recipe.parent / "ray" / "results.parquet")
    assert found == rows_of(recipe.parent / "plain" / "results.parquet")
    assert [row["error_kind"] for row in found if row["error_kind"]] == [
        "no_completion",
        "prompt_too_long",
        "not_found",
    ]
    feeds = [json.loads(path.read_text()) for path in (recipe.parent / "ray").glob("feed.*.json")]
    assert feeds and sum(feed["rows"] for feed in feeds) == 15 and sum(feed["clips"] for feed in feeds) == 8
    assert any(feed["peak_media_bytes"] > feed["media_limit_bytes"] == 1 for feed in feeds), "each clip passes alone"
    said = (recipe.parent / "said").read_text()
    assert "2 x running fake 1" in said and "the engine had nothing to do for" in said and "raylet" not in said


def test_an_engine_and_a_decoder_are_killed(make_run: Make, ray_address: str) -> None:
    recipe = make_run(windows(ROWS), script={"seconds_per_reply": 0.2, "texts": texts(ROWS)}, feed={"workers": 2})
    process = start(recipe, "--on", f"ray:{ray_address}", *TWO)
    wait_until(lambda: recorded(recipe) >= 3 and len(pids("EngineActor", recipe.parent)) == 2)
    os.kill(pids("Decoder", recipe.parent)[0], signal.SIGKILL)
    at_first = recorded(recipe)
    wait_until(lambda: recorded(recipe) >= at_first + 3)
    os.kill(pids("EngineActor", recipe.parent)[0], signal.SIGKILL)
    assert process.wait(timeout=120) == 0, (recipe.parent / "said").read_text()
    assert_every_row_once(recipe, ROWS)
    assert "is gone; starting it again (1 of 3)" in (recipe.parent / "said").read_text()


def test_a_node_is_lost(make_run: Make) -> None:
    """The one that is left has room for one engine and its first decoder; its second was on the lost one."""
    pytest.importorskip("ray")
    recipe = make_run(windows(ROWS), script={"seconds_per_reply": 0.3, "texts": texts(ROWS)}, feed={"workers": 4})
    with head(2) as address, further_node(address, 4) as lose_it:
        process = start(recipe, "--on", f"ray:{address}", *TWO)
        wait_until(lambda: len(pids("Decoder", recipe.parent)) == 4 and recorded(recipe) >= 3)
        assert recorded(recipe) < ROWS - 10
        lose_it()
        assert process.wait(timeout=120) == 0, (recipe.parent / "said").read_text()
    assert_every_row_once(recipe, ROWS)
    assert "is gone; starting it again (" in (recipe.parent / "said").read_text()


def test_the_command_is_stopped_killed_and_typed_again_beside_a_plain_one(make_run: Make, ray_address: str) -> None:
    # Few rows in an engine at once: those are finished when the command is told to stop.
    feed = {"workers": 2, "queue_depth": 4}
    recipe = make_run(windows(ROWS), script={"seconds_per_reply": 0.15, "texts": texts(ROWS)}, feed=feed)
    options = ("--on", f"ray:{ray_address}", *TWO)
    for number, code in ((signal.SIGTERM, 75), (signal.SIGKILL, -signal.SIGKILL)):
        before = recorded(recipe)
        process = start(recipe, *options)
        wait_until(lambda least=before + 5: recorded(recipe) >= least)
        process.send_signal(number)
        assert process.wait(timeout=60) == code, (recipe.parent / "said").read_text()
        wait_until(lambda: not pids("", recipe.parent))
        if number == signal.SIGTERM:
            claims = recipe.parent / "runs" / "recipe" / "claims"
            held = [file.name for file in claims.iterdir() if file.stat().st_mtime != 0]
            done = {file.name for file in (claims.parent / "done").iterdir()}
            assert {name.partition(".")[0] for name in held} <= done, "what is not done was given back"
    processes = [start(recipe, *options), start(recipe)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0], (recipe.parent / "said").read_text()
    assert_every_row_once(recipe, ROWS)


def test_a_row_that_kills_its_engine_is_given_up(make_run: Make, ray_address: str) -> None:
    script = {"crash_on": ["r7"], "texts": texts(12)}
    recipe = make_run(windows(12), script=script, retry={"attempts": 2}, feed={"workers": 2})
    process = start(recipe, "--on", f"ray:{ray_address}", *TWO)
    assert process.wait(timeout=120) == 1, (recipe.parent / "said").read_text()
    rows = rows_of(recipe.parent / "runs" / "recipe" / "results.parquet")
    assert len(rows) == 12 and {row["id"] for row in rows if row["status"] != "ok"} == {"r7"}
    assert rows[7]["error_kind"] == "poison_row" and rows[7]["attempt"] == 2


def test_without_an_address_a_cluster_of_this_host_and_an_engine_that_cannot_start_ends_the_run(
    make_run: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    recipe = make_run(windows(4), script={"fail_start": True})
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:  # for names of sockets
        monkeypatch.setenv("RAY_TMPDIR", folder)  # no other cluster of this host is found
        assert start(recipe, "--on", "ray").wait(timeout=120) == 3
    assert "the script says so" in (recipe.parent / "said").read_text()


POISON = """
import os, sys
from pathlib import Path
import numpy as np
from vidpipe.cluster.ray_connect import connected
from vidpipe.cluster.ray_pool import RayPool
from vidpipe.errors import MediaError

with connected(sys.argv[1], 1):
    pool = RayPool(1, deaths=2)
    kill = "import os, signal; os.kill(os.getppid(), signal.SIGKILL)"
    try:
        pool.submit(exec, kill, name="bad.mp4", time_limit_s=60).result()
    except MediaError as error:
        said = f"{error.kind} {error}"
    array = pool.submit(np.zeros, 10**6, np.uint8, name="good.mp4", time_limit_s=60).result()
    array[0] = 1  # in memory of its own
    Path(sys.argv[2]).write_text(f"{said}, {array.sum()} of {len(array)}")
    pool.close()
"""


def test_a_clip_that_kills_its_decoders_is_an_error_with_a_name(tmp_path: Path, ray_address: str) -> None:
    command = [sys.executable, "-c", POISON, ray_address, str(tmp_path / "said")]
    subprocess.run(command, capture_output=True, timeout=120, env=os.environ | ENVIRONMENT, check=True)
    expected = "corrupt bad.mp4: 2 decode actors died while they read it, 1 of 1000000"
    assert (tmp_path / "said").read_text() == expected


@pytest.mark.engine
def test_two_vllm_engines_answer_as_one(tmp_path: Path, ray_address: str) -> None:
    demo = ROOT / "recipes" / "demo.yaml"
    small = ("--set", "engine.args.max_num_seqs=2")
    command = [sys.executable, "-m", "vidpipe", "run", demo, "-o", tmp_path / "run", "--limit", "12", *TWO, *small]
    done = subprocess.run(
        [*map(str, command), "--on", f"ray:{ray_address}"],
        capture_output=True, text=True, timeout=500, env=os.environ | ENVIRONMENT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    table = pq.read_table(tmp_path / "run" / "results.parquet")
    # As of one engine in tests/engine/test_processes.py.
    assert len(table) == 12 and table["text"].to_pylist() == list(map(json.loads, table["answer"].to_pylist()))
