"""How a run is shown while it goes on: real processes, a real pseudo-terminal, and a killed worker."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest

from tests.conftest import ROOT, vidpipe
from vidpipe.cli.display import PlainDisplay
from vidpipe.cli.documents import ProgressDocument, StatusDocument
from vidpipe.job.progress import Progress
from vidpipe.record.failures import Failed
from vidpipe.record.status import RunStatus, StatusReader

Make = Callable[..., Path]
ROWS = [
    {"id": f"r{i:02}", "video": "ab"[i % 2] + ".mp4", "question": "?", "clip_start": i // 6 * 0.1} for i in range(24)
]
ROWS.append({"id": "gone", "video": "gone.mp4", "question": "?"})


def start(recipe: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "vidpipe", "run", str(recipe), "-o", str(recipe.parent / "run"), *options]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def status(recipe: Path) -> StatusDocument:
    done = vidpipe("status", recipe.parent / "run", "--json")
    assert done.returncode == 0, done.stderr
    return StatusDocument.model_validate_json(done.stdout)


def wait_for_rate(run_dir: Path) -> RunStatus:
    until, reader = time.monotonic() + 60, StatusReader(run_dir)
    while not ((run_dir / "run.json").exists() and (found := reader.read()).rows_per_s):
        assert time.monotonic() < until, "nobody says how fast it is"
        time.sleep(0.1)
    return found


def test_lines_of_json_tell_a_run_from_plan_to_end_and_leave_standard_output_alone(make_run: Make) -> None:
    script = {"seconds_per_reply": 0.03, "seconds_to_start": 0.7}
    process = start(make_run(ROWS, script=script), "--progress", "jsonl")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 1 and "25 of 25 rows (1 media_error, 24 ok)" in out and "{" not in out
    lines = [ProgressDocument.model_validate_json(line) for line in err.splitlines()]
    assert next(line.phase for line in lines if line.phase != "planning") == "starting"
    assert {"planning", "starting", "running", "ended"} == {line.phase for line in lines}
    assert lines[0].message.startswith("planning 25 rows") and all(line.pid == process.pid for line in lines)
    assert any(line.waits_for == "engine_start" for line in lines)
    last = lines[-1]
    assert (last.phase, last.rows, last.recorded, last.recorded_here, last.failed) == ("ended", 25, 25, 25, 1)
    assert last.statuses == {"ok": 24, "media_error": 1} and last.seconds_left == 0
    (failed,) = last.failures
    assert failed.kind == "not_found" and "gone.mp4" in failed.example and last.clips == 8
    assert last.tokens_out == 24 and last.tokens_in > 24
    assert last.seconds is not None and last.seconds.engine >= 24 * 0.03 and last.seconds.decode > 0
    assert last.idle_s["start"] >= 0.7
    assert last.seconds.engine + sum(last.idle_s.values()) == pytest.approx(last.elapsed_s, abs=0.01)


def test_a_terminal_gets_bars_that_are_gone_at_the_end(make_run: Make) -> None:
    recipe = make_run(ROWS, script={"seconds_per_reply": 0.06, "seconds_to_start": 0.7})
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ |= {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "40"}
        os.chdir(ROOT)
        os.execv(
            sys.executable, [sys.executable, "-m", "vidpipe", "run", str(recipe), "-o", str(recipe.parent / "run")]
        )
    shown = b""
    try:
        while piece := os.read(terminal, 1 << 16):
            shown += piece
    except OSError:  # its other end is closed
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    for name in ("rows", "decode", "prepare", "engine", "queue"):
        assert re.search(rf"^{name} +━+", text, re.MULTILINE), name
    assert "waits for its start" in text and re.search(r"rows/s, \d+ s left", text)
    assert re.search(r"^failed +1 x not_found: /.*…", text, re.MULTILINE)
    assert "of 25, 1 failed" in text and "2 clips on the way" in text
    ends = shown.decode().rpartition("\x1b[?25h")[2]
    assert "━" not in ends and "25 of 25 rows" in ends, "the cursor is back, the bars are wiped, the summary stands"


def test_status_tells_the_living_from_the_lost(make_run: Make) -> None:
    recipe = make_run(ROWS, script={"seconds_per_reply": 0.2}, record={"lease_s": 10}, retry={"attempts": 9})
    first = start(recipe, "--progress", "none")
    try:
        at_work = wait_for_rate(recipe.parent / "run")
        (worker,) = at_work.workers
        assert worker.pid == first.pid and worker.shards and not worker.late and worker.phase == "running"
        assert worker.recorded and 1 < at_work.rows_per_s < 8 and 0 < at_work.seconds_left < 60  # type: ignore[operator]
        first.send_signal(signal.SIGKILL)
        assert first.communicate() == ("", ""), "--progress none"
        found = status(recipe)
        (lost,) = found.lost
        assert lost.pid == first.pid and lost.shards and found.workers == [] and found.seconds_left is None
        assert "lost: " in vidpipe("status", recipe.parent / "run").stdout
        (recipe.parent / "run" / "progress.torn.1.json").write_text('{"holder": {"ho')
    finally:
        first.kill()
    second = start(recipe, "--progress", "plain")
    watched = vidpipe("status", recipe.parent / "run", "--watch", "--every", "0.3", "--json", timeout_s=60)
    _, err = second.communicate(timeout=60)
    seen = [StatusDocument.model_validate_json(line) for line in watched.stdout.splitlines()]
    assert len(seen) > 3 and seen[-1].recorded == 25 == seen[-1].rows and seen[-1].seconds_left == 0
    assert [one.recorded for one in seen] == sorted(one.recorded for one in seen)
    assert {failed.kind: failed.rows for failed in seen[-1].failures} == {"not_found": 1}
    assert "25 rows, " in err and "done before" in err
    assert status(recipe).workers == [] == status(recipe).lost


def test_a_log_gets_a_line_every_ten_seconds_and_later_every_minute() -> None:
    stream, now_s = StringIO(), 0.0
    display = PlainDisplay(stream, clock=lambda: now_s)
    display.begin(10_000, 0)
    for second in range(1, 1801):
        now_s = float(second)
        counts = {"ok": second - 2, "media_error": 2}
        failures = (Failed("not_found", 2, "x.mp4: no such file"),)
        display.show(
            Progress("running", "", 10_000, second, second, counts, failures, 1.0, 1.0, seconds_left=4000.0 - second)
        )
    lines = stream.getvalue().splitlines()
    assert lines[1].startswith("10 of 10000 rows, 2 failed (2 not_found), 1.0 rows/s, 1:06:30 left")
    assert 59 <= sum(int(line.split()[0]) < 600 for line in lines[1:]) <= 60 and 19 <= len(lines) - 61 <= 21
    before = len(lines)
    for second in range(1801, 1900):  # nothing comes any more, and a log says so
        now_s = float(second)
        display.show(Progress("running", "", 10_000, 1800, 1800, waits_for="clips"))
    assert len(stream.getvalue().splitlines()) - before in (1, 2)
    assert stream.getvalue().endswith("the engine waits for clips\n")


def test_a_style_that_is_none_is_refused(make_run: Make) -> None:
    wrong = vidpipe("run", make_run(), "--progress", "loud")
    assert wrong.returncode == 2 and "jsonl" in wrong.stderr
